"""A network with its processor: loading, and the inputs of a batch of contexts.

Everything loads through ``AutoModelForImageTextToText`` and ``AutoProcessor``; code from a checkpoint is never run.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from peft.helpers import disable_input_dtype_casting
from PIL import Image
from torch import Tensor
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoModelForImageTextToText,
    AutoProcessor,
    Qwen2_5_VLProcessor,
)
from transformers.utils import is_torchvision_available
from transformers.utils.logging import disable_progress_bar

from models.captions import Captioner, load_captioner
from models.engine import MAX_ANSWER_TOKENS, MAX_UNQUOTED_TOKENS, EngineError
from models.prompts import Context, message
from models.screens import ScreenParser, load_parser
from models.windows import side_by_side

POSITIVE, NEGATIVE = "<|+|>", "<|-|>"
OUR_CODE = {"trust_remote_code": False}  # left out, transformers asks on a terminal whether to run the checkpoint's
_FULL = "full_attention"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL)


@dataclass(frozen=True)
class Reader:
    """How contexts and answers become tokens; ``screenshots`` past ones are shown.

    ``captioner`` says what drawn elements look like and ``parser`` lists what is on a screen that comes without a list,
    for a base that does not see it by itself.
    """

    processor: Any
    screenshots: int
    captioner: Captioner | None
    parser: ScreenParser | None

    def message(self, context: Context) -> tuple[list[dict[str, Any]], list[bytes]]:
        """The chat message of a context, and its images (PNG)."""
        seen = self.parser.listed(context.observation) if self.parser else context.observation
        captions = self.captioner.captions(seen) if self.captioner else ()
        messages, images = message(replace(context, observation=seen), self.screenshots, captions)
        for part in messages[0]["content"]:
            if "text" in part:
                part["text"] = self._spelt(part["text"])
        return messages, images

    def prompt(self, context: Context) -> tuple[str, list[bytes]]:
        """The text of a prompt, with a placeholder for each image, and the images (PNG)."""
        messages, images = self.message(context)
        return str(self.processor.apply_chat_template(messages, add_generation_prompt=True)), images

    def tensors(self, context: Context) -> dict[str, Tensor]:
        """What the processor makes of a context's prompt: ``input_ids`` (1, tokens), ``attention_mask``, images."""
        text, images = self.prompt(context)
        return dict(self.processor(text=[text], images=[[_open(png) for png in images]], return_tensors="pt"))

    def picture(self, png: bytes) -> dict[str, Tensor]:
        """``input_ids`` (1, tokens), which stand for a screenshot in a prompt, and the vision tower's inputs."""
        alone = {"text": [self.processor.image_token], "add_special_tokens": False}  # it is in the midst of a prompt
        inputs = self.processor(**alone, images=[[_open(png)]], return_tensors="pt")
        return {name: value for name, value in inputs.items() if name not in ("attention_mask", "mm_token_type_ids")}

    def text_tokens(self, text: str) -> list[int]:
        """The tokens of a prompt's text, a placeholder for each image."""
        return list(self.processor.tokenizer.encode(text))

    def answer_tokens(self, answer: str) -> list[int]:
        """An answer as it stands after the prompt, with the token that ends the turn."""
        return [*self.processor.tokenizer.encode(self._spelt(answer), add_special_tokens=False), self.end]

    def ends(self, tokens: Sequence[int]) -> bool:
        """Whether an answer, one that did not end before, ends with its last token: as it says so, or is too long."""
        if tokens[-1] == self.end:
            return True
        if len(tokens) < MAX_UNQUOTED_TOKENS:
            return False
        quoted = "".join(_QUOTED.findall(self.text(tokens)))
        unquoted = len(tokens) - len(self.processor.tokenizer.encode(quoted, add_special_tokens=False))
        return unquoted >= MAX_UNQUOTED_TOKENS or len(tokens) >= MAX_ANSWER_TOKENS

    def said(self, tokens: Sequence[int]) -> str:
        """The answer that tokens spell, which may go on after its end."""
        ends = (count for count in range(1, len(tokens)) if self.ends(tokens[:count]))
        return self.text(tokens[: next(ends, len(tokens))])

    def text(self, tokens: Sequence[int]) -> str:
        """The answer that tokens spell."""
        return str(self.processor.tokenizer.decode(tokens, skip_special_tokens=True))

    def _spelt(self, text: str) -> str:
        """Text in which what spells a token of the chat's own, such as ``<image>``, is parted so that it stays text."""
        return self._reserved.sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", text)

    @cached_property
    def _reserved(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.processor.tokenizer.added_tokens_encoder)))

    @property
    def patch(self) -> int:
        """The token that stands for an image in a text, and for a patch of it in a prompt."""
        return int(self.processor.image_token_id)

    @property
    def placeholder(self) -> str:
        """How :attr:`patch` is spelt."""
        return str(self.processor.tokenizer.convert_ids_to_tokens(self.patch))

    @property
    def end(self) -> int:
        """The token that ends an answer."""
        return int(self.processor.tokenizer.eos_token_id)

    @property
    def verdicts(self) -> tuple[int, int]:
        """The tokens of ``<|+|>`` and ``<|-|>``."""
        positive, negative = self.processor.tokenizer.convert_tokens_to_ids([POSITIVE, NEGATIVE])
        return positive, negative


@dataclass(frozen=True)
class Network(Reader):
    """``model`` is the image-text-to-text module, peft-wrapped while training."""

    model: Any

    def place(self, value: Tensor) -> Tensor:
        """A tensor where the model is, and of its type if it holds fractions."""
        value = value.to(self.model.device)
        return value.to(self.model.dtype) if value.is_floating_point() else value

    def embed(self, ids: Tensor) -> Tensor:
        """Embeddings (batch, tokens, width) of token ids."""
        embedded: Tensor = self.model.get_input_embeddings()(self.place(ids))
        return embedded

    def see(self, pictures: Sequence[Mapping[str, Tensor]]) -> list[Tensor]:
        """Features (patches, width) of pictures by their :meth:`picture` inputs, those of one shape together.

        Raises:
            EngineError: when what the vision tower gives cannot be told apart by picture.
        """
        alike: dict[tuple[torch.Size, ...], list[int]] = {}
        for place, inputs in enumerate(pictures):
            alike.setdefault(tuple(value.shape for value in inputs.values()), []).append(place)
        features: dict[int, Tensor] = {}
        for places in alike.values():
            names = pictures[places[0]]
            inputs = {name: self.place(torch.cat([pictures[place][name] for place in places])) for name in names}
            pooled = self._body.get_image_features(**inputs).pooler_output
            features |= zip(places, self._by_picture(pooled, len(places)), strict=True)
        return [features[place] for place in range(len(pictures))]

    def _by_picture(self, pooled: Any, count: int) -> Sequence[Tensor]:
        """What a vision tower gives of pictures that are alike: some have a row for each tile of a picture."""
        if isinstance(pooled, Tensor) and len(pooled) % count == 0:
            pooled = pooled.reshape(count, -1, pooled.shape[-1])
        if len(pooled) != count:
            raise EngineError(
                f"{self.kind}: get_image_features gives {len(pooled)} rows for {count} screenshots, not as many for "
                "each; set base.agent and base.reward to other models, such as Qwen2.5-VL"
            )
        found: Sequence[Tensor] = pooled
        return found

    def positions(self, ids: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Positions (tokens, axes) of a picture's tokens, from where it begins."""
        if self.axes == 1:
            return torch.arange(len(ids))[:, None]
        kinds = (ids == self.patch).long()[None]
        found, _ = self._body.get_rope_index(ids[None], kinds, image_grid_thw=inputs["image_grid_thw"])
        positions: Tensor = found[:, 0].T
        return positions

    @property
    def abreast(self) -> int:
        """Tokens of several trees, with padding, that are best computed at once; 0 where a tree at a time is best.

        In float32 on a CPU a token of padding takes as long as any other.
        """
        if self.model.device.type == "cpu":
            return 2048 if self.model.dtype == torch.bfloat16 else 0
        return 8192

    @property
    def axes(self) -> int:
        """Of the rotary positions: time, height and width for the Qwen-VL family, else one."""
        return 3 if hasattr(self._body, "get_rope_index") else 1

    def hidden(self, **inputs: Any) -> Any:
        """The last hidden states, without the output head: (batch, tokens, width), and the cache."""
        return self._body(**inputs)

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """Matrix products in bfloat16 where the base is in it, though what is trained is in float32.

        Entered once an update: each weight is cast once for as long as it is open, and what an adapter is given is not
        cast to float32 and back, as peft would.
        """
        model, half = self.model, self.model.dtype == torch.bfloat16
        with torch.autocast(model.device.type, torch.bfloat16, enabled=half), disable_input_dtype_casting(model, half):
            yield

    @property
    def kind(self) -> str:
        """The name of the model's class, for a message."""
        return type(self._body).__name__

    @property
    def _body(self) -> Any:
        return self.model.get_base_model().model if isinstance(self.model, PeftModel) else self.model.model

    def head(self, hidden: Tensor, among: Sequence[int] = ()) -> Tensor:
        """Logits (..., tokens) in float32 of hidden states (..., width): of the tokens ``among``, or of all."""
        output = self.model.get_output_embeddings()
        if among:  # in float32 throughout: in bfloat16 two logits near each other would often be the same
            with torch.autocast(hidden.device.type, enabled=False):
                return functional.linear(hidden.float(), output.weight[list(among)].float())
        logits: Tensor = output(hidden)
        return logits.float()


def _open(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def load_base(base: str, dtype: str, screenshots: int, device: str | None = None) -> Network:
    """The base by directory or hub name, with the two verdict tokens (added where it lacks them).

    It is on ``device``: unless told, on the GPU where there is one.

    Raises:
        EngineError: there is no such base, its processor does not load, or its vision tower or its layers have what is
            not computed here.
    """
    disable_progress_bar()
    _refuse_what_is_not_computed(base)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    model = AutoModelForImageTextToText.from_pretrained(base, dtype=getattr(torch, dtype), **OUR_CODE).to(device)
    side_by_side(model)
    processor, added = _processor(base)
    if added:
        _embed_verdicts(model, processor.tokenizer)
    return Network(processor, screenshots, load_captioner(base), load_parser(base), model.eval())


def load_reader(base: str, screenshots: int) -> Reader:
    """What reads prompts as the base's network does, without its weights."""
    return Reader(_processor(base)[0], screenshots, load_captioner(base), load_parser(base))


def config_of(base: str) -> Any:
    """The configuration of the base, by directory or hub name.

    Raises:
        EngineError: there is none.
    """
    try:
        return AutoConfig.from_pretrained(base, **OUR_CODE)
    except (OSError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise EngineError(f"{base}: neither a directory with a model nor a name that the hub knows: {said}") from error


def has_verdicts(base: str) -> bool:
    """Whether the base has the verdict tokens as it is stored.

    Raises:
        EngineError: there is no such base, or its processor does not load.
    """
    return not _processor(base)[1]


def save(network: Network, folder: Path) -> None:
    """Write the whole network and its processor, as other engines load them."""
    network.model.save_pretrained(str(folder))
    network.processor.save_pretrained(str(folder))


def _refuse_what_is_not_computed(base: str) -> None:
    """What would be lost without a word.

    Pictures are the tokens' embeddings here, so it is what a tower hands to later layers. And layers that do not attend
    to all before, such as recurrences and convolutions, do not mind the mask that keeps the branches of a tree apart.
    """
    config = config_of(base)
    if getattr(getattr(config, "vision_config", None), "deepstack_visual_indexes", None):
        raise EngineError(
            f"{base}: its vision tower feeds later layers too (deepstack_visual_indexes, as Qwen3-VL's), which is not "
            "computed here; set base.agent and base.reward to models without, such as Qwen2.5-VL"
        )
    if others := set(getattr(config.get_text_config(), "layer_types", None) or ()) - {_FULL}:
        raise EngineError(
            f"{base}: it has layers of {', '.join(sorted(others))} (layer_types, as Qwen3.5's), and only those of "
            f"{_FULL} keep the branches of a tree apart; set base.agent and base.reward to models without, such as "
            "Qwen2.5-VL"
        )


def _processor(base: str) -> tuple[Any, int]:
    """The processor of the base, and how many of the verdict tokens it lacked."""
    try:
        processor = _loader(base).from_pretrained(base, **OUR_CODE)
        # As on a vLLM server: transformers would let torchvision resize, where that is. The whole processor is not
        # told, for its video half would take it for its own, and fail.
        processor.image_processor = AutoImageProcessor.from_pretrained(base, backend="pil", **OUR_CODE)
    except (ImportError, OSError, ValueError) as error:  # Qwen2-VL's and SmolVLM2's have a video half: torchvision
        said = " ".join(str(error).split())
        raise EngineError(f"{base}: its processor does not load: {said}; install in .venv what it names") from error
    tokens = {"additional_special_tokens": [POSITIVE, NEGATIVE]}
    return processor, processor.tokenizer.add_special_tokens(tokens, False)


def _loader(base: str) -> Any:
    """What loads a base's processor: that of the Qwen-VL family needs torchvision for videos, which we have none of."""
    kind = config_of(base).model_type
    return PicturesOnly if kind == "qwen2_5_vl" and not is_torchvision_available() else AutoProcessor


class PicturesOnly(Qwen2_5_VLProcessor):  # type: ignore[misc]
    """Qwen2.5-VL's processor without its video half. What it writes is read as the whole, where torchvision is."""

    def __init__(self, image_processor: Any, tokenizer: Any, chat_template: str | None = None) -> None:
        super().__init__(image_processor, tokenizer, chat_template=chat_template)

    def to_dict(self) -> dict[str, Any]:
        """What is written beside the tokenizer."""
        video = {"video_processor_type": "Qwen2VLVideoProcessor"}
        return {**super().to_dict(), "processor_class": Qwen2_5_VLProcessor.__name__, "video_processor": video}


@torch.no_grad()
def _embed_verdicts(model: Any, tokenizer: Any) -> None:
    """Give the verdict tokens the rows of Yes and No: rows drawn at random would differ from load to load."""
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    for verdict, word in ((POSITIVE, " Yes"), (NEGATIVE, " No")):
        row, like = tokenizer.convert_tokens_to_ids(verdict), tokenizer.encode(word, add_special_tokens=False)[-1]
        for table in (model.get_input_embeddings().weight, model.get_output_embeddings().weight):
            table[row] = table[like]
