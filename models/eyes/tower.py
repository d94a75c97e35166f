"""The vision tower and its first training: dense reading, against the language model's input embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Idefics3Config, Idefics3ImageProcessorPil, Idefics3VisionConfig
from transformers.models.idefics3.modeling_idefics3 import Idefics3Connector, Idefics3VisionTransformer

from models.eyes.shape import HEADS, IMAGE_PX, INNER, LAYERS, MEAN, PATCH_PX, PATCHES, SHUFFLE, STD, WIDTH
from models.eyes.targets import BLANK, LETTERS, SLOTS

_CLASSES = len(LETTERS) + 2
_SHARPNESS = 16.0  # the logit of a cell that says a word of mean length exactly
_BLANK_WEIGHT = 0.1  # most patches and cells show nothing
_DISTRACTORS = 1024  # words of the vocabulary that a batch does not say


def vision_config() -> dict[str, int | str]:
    """The tower's part of the base's configuration."""
    return {
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "image_size": IMAGE_PX,
        "patch_size": PATCH_PX,
    }


def image_processor() -> Idefics3ImageProcessorPil:
    """What makes a screenshot the tower's input: one scaling to a square, and paper near zero."""
    return Idefics3ImageProcessorPil(
        do_resize=False,  # it would scale twice
        do_image_splitting=False,
        max_image_size={"longest_edge": IMAGE_PX},
        image_mean=[MEAN] * 3,
        image_std=[STD] * 3,
    )


class Tower(nn.Module):
    """Tower, connector, and a head that names letters, which is dropped after the training."""

    def __init__(self, width_of_words: int) -> None:
        super().__init__()
        config = Idefics3Config(vision_config=vision_config(), scale_factor=SHUFFLE)
        config.text_config.hidden_size = width_of_words
        vision = Idefics3VisionConfig(**vision_config())
        vision._attn_implementation = "sdpa"
        self.vision_model = Idefics3VisionTransformer(vision)
        self.connector = Idefics3Connector(config)
        self.letters = nn.Linear(WIDTH, SLOTS * _CLASSES)
        look_beside(self.vision_model)
        _begin_idle(self.vision_model.encoder.layers[BESIDE_LAYERS:])

    def forward(self, pixels: Tensor, places: Tensor, layers: int = LAYERS) -> tuple[Tensor, Tensor]:
        """Logits of letters (batch, patches, slots, classes) and what the cells say (batch, cells, width of words).

        ``pixels`` is a square part of each picture, ``places`` the numbers of its patches (batch, patches). Of the
        tower's layers only the first ``layers`` are run.
        """
        embeddings = self.vision_model.embeddings
        patches = embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
        patches = patches + embeddings.position_embedding(places)
        for layer in self.vision_model.encoder.layers[:layers]:
            patches = layer(patches, None)
        patches = self.vision_model.post_layernorm(patches)
        return self.letters(patches).unflatten(-1, (SLOTS, _CLASSES)), self.connector(patches)


@torch.no_grad()
def _begin_idle(layers: Iterable[Any]) -> None:
    """Make layers pass on what they are given, so that they can be added to those that have learnt already."""
    for layer in layers:
        for last in (layer.self_attn.out_proj, layer.mlp.fc2):
            last.weight.zero_()
            last.bias.zero_()


BESIDE_LAYERS = 2
_BESIDE = ((0, -1), (0, 1), (-1, 0), (1, 0))  # rows and columns away, one for each head


@torch.no_grad()
def look_beside(vision: Idefics3VisionTransformer, sharpness: float = 3.0) -> None:
    """Begin with heads that attend to the patches beside: letters straddle patches, and finding that out takes long.

    The position embeddings become sines and cosines of row and column; queries read them as they are and keys turned
    by one place, so that a query fits best the key one place away (as ConViT does, arXiv:2103.10697, by other means).
    """
    pairs = WIDTH // 4
    waves = torch.logspace(math.log10(0.15), math.log10(2.5), pairs)
    angles = torch.arange(PATCHES)[:, None] * waves
    turns = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)  # (places a side, half of the width)
    rows, columns = turns[:, None].expand(-1, PATCHES, -1), turns[None].expand(PATCHES, -1, -1)
    vision.embeddings.position_embedding.weight.copy_(torch.cat([rows, columns], dim=-1).flatten(0, 1) / 2)
    for layer in vision.encoder.layers[:BESIDE_LAYERS]:
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            projection.weight.mul_(0.1)
        for head, beside in enumerate(_BESIDE):
            _attend(layer.self_attn, head, beside, waves, sharpness)


def _attend(attention: Any, head: int, beside: tuple[int, int], waves: Tensor, sharpness: float) -> None:
    """Make a head's queries fit the keys ``beside``: every second wave of rows and of columns."""
    size, half = WIDTH // HEADS, WIDTH // 2
    for axis, step in enumerate(beside):
        for number in range(size // 4):
            wave = 4 * number % len(waves) + 4 * number // len(waves)
            at, row = half * axis + 2 * wave, size * head + size // 2 * axis + 2 * number
            cosine, sine = math.cos(waves[wave] * step), math.sin(waves[wave] * step)
            attention.q_proj.weight[row : row + 2, at : at + 2] += sharpness * torch.eye(2)
            turned = torch.tensor([[cosine, sine], [-sine, cosine]])
            attention.k_proj.weight[row : row + 2, at : at + 2] += sharpness * turned


def letters_loss(logits: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy of the slots' classes; blank ones count little."""
    weight = torch.ones(_CLASSES, device=logits.device)
    weight[BLANK] = _BLANK_WEIGHT
    return functional.cross_entropy(logits.float().flatten(0, -2), wanted.flatten(), weight)


def words_loss(said: Tensor, wanted: Tensor, table: Tensor, blank: int, generator: torch.Generator) -> Tensor:
    """How far the cells are from the mean of their words, plus the cross-entropy of the words, shared evenly.

    Args:
        said: what the cells say, (batch, cells, width).
        wanted: tokens (batch, cells, words), -1 for none; a cell without any is to be the word ``blank``.
        table: the language model's input embeddings (tokens, width), which the words are compared with.
    """
    told = wanted >= 0
    some = told.any(-1)
    size = table.square().sum(-1).mean()
    nothing = (said[~some].float() - table[blank]).square().sum(-1) / size
    said, wanted, told = said[some], wanted[some].clamp(min=0), told[some]
    share = told / told.sum(-1, keepdim=True)
    apart = (said.float() - (table[wanted] * share[..., None]).sum(-2)).square().sum(-1) / size
    drawn = torch.randint(len(table), (_DISTRACTORS,), generator=generator)
    among, place = torch.cat([wanted[told], drawn]).unique(return_inverse=True)  # type: ignore[no-untyped-call]
    chances = (said @ (table[among].T * (_SHARPNESS / size)).to(said.dtype)).float().log_softmax(-1)
    index = torch.zeros_like(wanted)
    index[told] = place[: int(told.sum())]
    missed = -(chances.gather(-1, index) * share).sum(-1)
    return (missed + apart).mean() + _BLANK_WEIGHT * nothing.mean()


def optimizers(tower: nn.Module, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, at four times the rate, AdamW for the rest."""
    inner = [p for name, p in tower.named_parameters() if p.ndim == 2 and ".layers." in name]
    chosen = {id(parameter) for parameter in inner}
    rest = [p for p in tower.parameters() if id(p) not in chosen]
    muon = torch.optim.Muon(inner, lr=4 * rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    trained = [muon, torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.01)]
    for optimizer in trained:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return trained
