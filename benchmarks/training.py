"""Training on steps of trajectories: packed, each in a row of its own, and by TRL. ``python -m benchmarks.training``.

All train the same LoRA adapter of the same base on the same steps (goal, up to five past screenshots, elements, and
the action to learn), with as many steps a batch as a trajectory has, in turns on the same machine. Tokens are those
of the separate rows for all, so that tokens a second compare as rows do; the share of the peak is that of the
operations really done, against a big matrix product in the same run. Figures are medians over rounds. The last line
is one JSON object. ``make peers`` sets TRL up; ``--base qwen-3b --dtype bfloat16`` is for a GPU.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.shapes import load
from environments.types import Action, Element, Observation
from models.network import Network
from models.packing import imitation, learn, loss
from models.prompts import Context
from models.training import laid_ahead
from models.tuning import Tuning, tunable
from models.windows import SIDE_BY_SIDE, side_by_side
from tasks.params import load_params
from tasks.stages import pin

PEER = Path(__file__).parents[1] / ".ratchet/trl/bin/python"
LENGTHS = (5, 8)
RATE = 1e-4
ELEMENTS = 8


@dataclass(frozen=True)
class Job:
    """Trajectories of one length, a batch each: the first is a warm-up. An item is a context and its action."""

    network: Network
    batches: list[list[tuple[Context, str]]]

    @property
    def rows(self) -> int:
        return sum(map(len, self.batches[1:]))


def screenshot(draw: random.Random, size: tuple[int, int]) -> bytes:
    image = Image.new("RGB", size, tuple(draw.randrange(256) for _ in range(3)))
    for _ in range(30):
        left, top = draw.randrange(size[0]), draw.randrange(size[1])
        image.paste(tuple(draw.randrange(256) for _ in range(3)), (left, top, left + 40, top + 15))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def trajectory(draw: random.Random, steps: int, size: tuple[int, int]) -> list[tuple[Context, str]]:
    """The steps of one: each with a screen of its own, of which an element is clicked."""
    words = ("Submit", "Cancel", "Next page", "Log in", "user name", "Search", "Delete", "Reply", "Forward")
    goal = f'Find the message from {draw.choice(words)} and press "{draw.choice(words)}" in it'
    history: list[tuple[bytes, Action]] = []
    found = []
    for _ in range(steps):
        elements = tuple(
            Element("button", draw.choice(words), (draw.randrange(100), draw.randrange(180), 40, 15))
            for _ in range(ELEMENTS)
        )
        seen, action = Observation(screenshot(draw, size), elements), Action.click(draw.choice(elements))
        found.append((Context(goal, tuple(history), seen), str(action)))
        history.append((seen.screenshot, action))
    return found


def packed(job: Job) -> float:
    """As the product trains: on a GPU with the next batch laid out meanwhile, and the tower's windows side by side."""
    network = job.network
    side_by_side(network.model.get_base_model())
    samples = [[imitation(network, *item) for item in batch] for batch in job.batches]
    with laid_ahead(network, samples.__getitem__, len(samples)) as laid:
        return by_hand(job.network, len(job.batches), lambda number: learn(network, laid(number)))


def unpacked(job: Job) -> float:
    one_by_one(job.network.model.get_base_model())
    return by_hand(job.network, len(job.batches), lambda number: plain(job.network, job.batches[number]))


def one_by_one(model: Any) -> None:
    """Have the vision tower compute a window after the other, where it computes them side by side."""
    if model.config.vision_config._attn_implementation == SIDE_BY_SIDE:
        model.set_attn_implementation({"vision_config": "sdpa"})


def plain(network: Network, batch: Sequence[tuple[Context, str]]) -> Tensor:
    """The loss of separate rows, padded on the left, as the processor and the model are meant to be used."""
    answers = [network.answer_tokens(action) for _, action in batch]
    prompts = [network.prompt(context) for context, _ in batch]
    images = [[Image.open(io.BytesIO(png)).convert("RGB") for png in shown] for _, shown in prompts]
    texts = [
        text + network.processor.tokenizer.decode(answer) for (text, _), answer in zip(prompts, answers, strict=True)
    ]
    inputs = network.processor(text=texts, images=images, padding=True, padding_side="left", return_tensors="pt")
    hidden = network.hidden(**{name: network.place(value) for name, value in inputs.items()}, use_cache=False)
    width = max(map(len, answers))
    wanted = torch.tensor([[*[-100] * (width - len(answer)), *answer] for answer in answers])
    logits = network.head(hidden.last_hidden_state[:, -width - 1 : -1])
    return functional.cross_entropy(logits.flatten(0, 1), network.place(wanted).flatten())


def by_hand(network: Network, batches: int, value_of: Callable[[int], Tensor]) -> float:
    """Seconds of all batches but the first, from the loss of a batch by its number: with a graph, or learnt already."""
    weights = [weight for weight in network.model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=RATE)
    began = clock()
    for number in range(batches):
        if number == 1:
            began = clock()
        optimizer.zero_grad(set_to_none=True)
        with network.autocast():
            value = value_of(number)
        if value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
    return clock() - began


def clock() -> float:
    """Now, when all that was asked for is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def trl(job: Job) -> float:
    """Seconds of all batches but the first in TRL's SFTTrainer, as it comes: conversations with their pictures."""
    one_by_one(job.network.model.get_base_model())
    rows = [conversation(job.network, *item) for batch in job.batches for item in batch]
    return completed(job.network, rows, len(job.batches[0]))


def completed(network: Network, rows: Sequence[dict[str, Any]], batch_rows: int) -> float:
    """Seconds that SFTTrainer takes to learn the completions of all batches but the first."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    marks: list[float] = []

    class Timer(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append(clock())

    with TemporaryDirectory(prefix="ratchet-trl-") as folder:
        config = SFTConfig(
            output_dir=folder,
            max_length=None,
            per_device_train_batch_size=batch_rows,
            num_train_epochs=1,
            learning_rate=RATE,
            completion_only_loss=True,
            gradient_checkpointing=False,
            shuffle_dataset=False,
            bf16=network.model.dtype == torch.bfloat16,  # as ours: by autocast
            use_cpu=not torch.cuda.is_available(),
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        model, processor, data = network.model, network.processor, Dataset.from_list(list(rows))
        trainer = SFTTrainer(model, config, train_dataset=data, processing_class=processor, callbacks=[Timer()])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return marks[-1] - marks[0]


def conversation(network: Network, context: Context, action: str) -> dict[str, Any]:
    messages, images = network.message(context)
    answer = [{"role": "assistant", "content": [{"type": "text", "text": action}]}]
    return {"prompt": messages, "completion": answer, "images": [Image.open(io.BytesIO(png)) for png in images]}


WAYS: dict[str, Callable[[Job], float]] = {"packed": packed, "unpacked": unpacked, "TRL": trl}


def peak(dtype: torch.dtype) -> float:
    """Operations a second of a big matrix product, the best of ten."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    side = 8192 if device == "cuda" else 2048
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(10):
        began = clock()
        left @ right
        seconds.append(clock() - began)
    return 2 * side**3 / min(seconds)


def measure(network: Network, steps: int, asked: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Of each way: rows and tokens a second, operations a row, and the share of the peak."""
    draw = random.Random(steps)
    batches = [trajectory(draw, steps, asked.screen) for _ in range(1 + asked.batches)]
    job = Job(network, batches)
    assert_same_loss(network, batches[0])
    tokens = sum(
        network.tensors(context)["input_ids"].shape[1] + len(network.answer_tokens(action))
        for batch in batches[1:]
        for context, action in batch
    )
    done = {name: operations(way, Job(network, batches[:1])) for name, way in WAYS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(asked.rounds):
        for name, way in WAYS.items():
            seconds[name].append(way(job))
    highest = peak(network.model.dtype)
    return {
        name: {
            "rows_per_s": job.rows / median(found),
            "tokens_per_s": tokens / median(found),
            "gigaflop_per_row": done[name] / steps / 1e9,
            "share_of_peak": done[name] / steps * job.rows / median(found) / highest,
        }
        for name, found in seconds.items()
    }


def operations(way: Callable[[Job], float], job: Job) -> float:
    """Floating-point operations of the matrix products and attentions of a job's batch."""
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm: addmm_operations}) as counter:
        way(job)
    return float(counter.get_total_flops())


def addmm_operations(_: Any, left: Sequence[int], right: Sequence[int], *_rest: Any, **_told: Any) -> int:
    """Of a matrix product, by its shapes: the counter's own formula fails where a GPU is told the output's type."""
    return 2 * left[0] * left[1] * right[1]


def assert_same_loss(network: Network, batch: Sequence[tuple[Context, str]]) -> None:
    """Both of our ways must mean the same."""
    with torch.no_grad(), network.autocast():
        ours = loss(network, [imitation(network, *item) for item in batch]).item()
        theirs = plain(network, batch).item()
    if abs(ours - theirs) > (1e-3 if network.model.dtype == torch.float32 else 0.1):
        raise SystemExit(f"the packed loss is {ours}, that of separate rows {theirs}")


def pixels(size: str) -> tuple[int, int]:
    width, height = map(int, size.split("x"))
    return width, height


def opened(module: str, about: str, counted: str) -> tuple[argparse.Namespace, Network]:
    """The arguments of a benchmark that has TRL for a peer, and the network to train; under TRL's own Python.

    ``counted`` are the things timed in a round, two by default.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--base", default="embedded", help="embedded, qwen-3b, qwen-tiny (random), or a folder")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--screen", type=pixels, default="160x210", help="pixels of a screenshot")
    parser.add_argument(f"--{counted}", type=int, default=2, help="timed in a round")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    params = load_params()
    if find_spec("trl") is None:
        if not PEER.exists():
            raise SystemExit(f"there is no {PEER}; run `make peers`")
        pin(params.numerics)
        os.execv(PEER, [str(PEER), "-m", f"benchmarks.{module}", *sys.argv[1:]])
    return asked, tunable(load(asked.base, asked.dtype), Tuning(**params.tune.model_dump()), 0)


def main() -> None:
    asked, network = opened("training", __doc__, "batches")
    network.model.train()
    pictures = network.picture(screenshot(random.Random(0), asked.screen))["input_ids"].shape[1]
    print(f"{asked.base}, {asked.dtype}, {network.model.device}, {pictures} tokens a picture")
    print(f"{'steps':>5}  {'':8}  rows/s  tokens/s  GFLOP/row  of peak")
    ratios: dict[str, float] = {"tokens_per_picture": pictures}
    for steps in LENGTHS:
        found = measure(network, steps, asked)
        for name, line in found.items():
            print(
                f"{steps:5}  {name:8}  {line['rows_per_s']:6.2f}  {line['tokens_per_s']:8.0f}  "
                f"{line['gigaflop_per_row']:9.1f}  {line['share_of_peak']:7.3f}"
            )
        rate = {name: line["rows_per_s"] for name, line in found.items()}
        ratios |= {f"packed_over_trl_{steps}": rate["packed"] / rate["TRL"]}
        ratios |= {f"packed_over_unpacked_{steps}": rate["packed"] / rate["unpacked"]}
        ratios |= {f"peak_share_{name.lower()}_{steps}": line["share_of_peak"] for name, line in found.items()}
    for peer in ("trl", "unpacked"):
        ratios[f"packed_over_{peer}"] = min(ratios[f"packed_over_{peer}_{steps}"] for steps in LENGTHS)
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
