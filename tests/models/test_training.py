from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tiny import contexts, journey
from torch import Tensor

from models import network as networks
from models import training
from models.engine import MAX_ANSWER_TOKENS
from models.inference import TorchEngine
from models.network import Network, load_base
from models.packing import Sample, imitation, loss
from models.training import Descent, Schedule, _batches, train
from models.tuning import Method, Tuning, save_tuned, tunable
from models.tuning import trained as trained_of

SCHEDULE = Schedule(updates=20, batch_rows=2, learning_rate=0.02, seed=7)


def fresh(base: Path, rank: int = 8, method: Method = "lora", dtype: str = "float32") -> Network:
    return tunable(load_base(str(base), dtype, 5), Tuning(method, rank, 2 * rank, 0), seed=0)


def answers(network: Network) -> list[Sample]:
    return [imitation(network, context, f"wait{place}") for place, context in enumerate(contexts())]


class Killed(Exception):
    pass


def silent(done: int, value: float) -> None:
    pass


def test_each_optimizer_goes_at_its_own_rate_up_a_line_and_down_a_cosine(tmp_path: Path) -> None:
    """Plain descent at slope 1/2: each step is half the rate. Warm-up of 2, floor 1/5, by hand."""
    weights = {"fast": torch.zeros((), requires_grad=True), "slow": torch.zeros((), requires_grad=True)}
    optimizers = [torch.optim.SGD([weights["fast"]], lr=1.0), torch.optim.SGD([weights["slow"]], lr=0.1)]
    seen: list[tuple[float, float]] = []

    def slope(update: int) -> Tensor:
        seen.append((weights["fast"].item(), weights["slow"].item()))
        return (weights["fast"] + weights["slow"]) / 2

    losses = Descent(weights, optimizers, 6, 2, 0.2).run(slope, tmp_path, silent)
    seen.append((weights["fast"].item(), weights["slow"].item()))
    steps = [(2 * (a - c), 2 * (b - d)) for (a, b), (c, d) in pairwise(seen)]
    rates = [0.5, 1.0, 1.0, 0.2 + 0.4 * (1 + 0.5**0.5), 0.6, 0.2 + 0.4 * (1 - 0.5**0.5)]
    assert steps == [(pytest.approx(rate, rel=1e-5), pytest.approx(rate / 10, rel=1e-5)) for rate in rates]
    assert losses == [pytest.approx((a + b) / 2, rel=1e-6) for a, b in seen[:-1]]


def test_a_steep_slope_is_clipped_over_all_weights(tmp_path: Path) -> None:
    """Gradient (3, 4), of norm 5, becomes (0.6, 0.8)."""
    weights = {name: torch.zeros((), requires_grad=True) for name in "ab"}
    optimizers = [torch.optim.SGD([weight], lr=1.0) for weight in weights.values()]
    Descent(weights, optimizers, 1, 1, 0.0).run(lambda update: 3 * weights["a"] + 4 * weights["b"], tmp_path, silent)
    assert [weight.item() for weight in weights.values()] == [pytest.approx(-0.6), pytest.approx(-0.8)]


def test_a_loss_that_is_not_finite_ends_the_training(tmp_path: Path) -> None:
    weight = torch.zeros((), requires_grad=True)
    descent = Descent({"a": weight}, [torch.optim.SGD([weight], lr=1.0)], 9, 1, 0.0)
    with pytest.raises(FloatingPointError, match="the loss of update 3 is inf; lower the learning rate"):
        descent.run(lambda update: weight + (math.inf if update == 2 else 0.0), tmp_path, silent)


def descended(folder: Path, updates: int, best_at: float, end: int = 0) -> tuple[list[float], float]:
    """From 0 up by 1/2 an update, where a held-out loss is least at ``best_at``; killed after ``end`` updates."""

    def report(done: int, value: float) -> None:
        if done == end:
            raise Killed

    weight = torch.zeros((), requires_grad=True)
    descent = Descent(
        {"a": weight}, [torch.optim.SGD([weight], lr=1.0)], updates, 1, 1.0, 3, lambda: abs(weight.item() - best_at)
    )
    return descent.run(lambda update: -weight / 2, folder, report), weight.item()


@pytest.mark.parametrize(("best_at", "ends"), [(0.0, 3), (1.4, 3), (2.4, 6), (2.9, 6), (4.5, 9), (9.9, 20)])
def test_a_descent_ends_where_a_held_out_loss_was_least(tmp_path: Path, best_at: float, ends: int) -> None:
    """It is asked after 3, 6, ... updates, and at the end; the weight is then 1.5, 3, ..., and 10."""
    losses, weight = descended(tmp_path, 20, best_at)
    assert weight == ends / 2
    assert len(losses) == ends


@pytest.mark.parametrize("end", [2, 6, 8])
def test_a_killed_descent_ends_as_early(tmp_path: Path, end: int) -> None:
    whole = descended(tmp_path / "a", 20, 2.9)
    with pytest.raises(Killed):
        descended(tmp_path / "b", 20, 2.9, end)
    assert descended(tmp_path / "b", 20, 2.9) == whole


@pytest.mark.parametrize("stop", [3, 7])
def test_a_killed_descent_of_two_optimizers_ends_with_the_same_bytes(tmp_path: Path, stop: int) -> None:
    def descend(folder: Path, end: int) -> tuple[list[float], list[bytes]]:
        def report(done: int, value: float) -> None:
            if done == end:
                raise Killed

        drawn = torch.Generator().manual_seed(0)
        weights = {name: torch.randn(4, 4, generator=drawn, requires_grad=True) for name in "ab"}
        optimizers = [torch.optim.Muon([weights["a"]], lr=0.1), torch.optim.AdamW([weights["b"]], lr=0.1)]
        descent = Descent(weights, optimizers, 9, 2, 0.1, save_every=2)
        inputs = torch.randn(9, 4, 4, generator=drawn)
        losses = descent.run(lambda at: (inputs[at] @ weights["a"] @ weights["b"]).square().mean(), folder, report)
        return losses, [weight.detach().numpy().tobytes() for weight in weights.values()]

    whole = descend(tmp_path / "a", 0)
    with pytest.raises(Killed):
        descend(tmp_path / "b", stop)
    assert descend(tmp_path / "b", 0) == whole


@pytest.mark.parametrize("left", [0, 4, 100])
def test_a_checkpoint_that_is_torn_is_set_aside(tmp_path: Path, left: int) -> None:
    """What a power cut may leave of it: the training begins anew, and ends the same."""
    whole = descended(tmp_path / "a", 20, 9.9)
    with pytest.raises(Killed):
        descended(tmp_path / "b", 20, 9.9, 8)
    (kept,) = (tmp_path / "b").iterdir()
    torn = kept.read_bytes()[:left]
    kept.write_bytes(torn)
    assert descended(tmp_path / "b", 20, 9.9) == whole
    assert kept.with_suffix(".broken").read_bytes() == torn


def test_loss_falls_and_the_answers_are_learnt(base: Path, tmp_path: Path, method: Method) -> None:
    network = fresh(base, 32, method)
    schedule = Schedule(updates=150, batch_rows=3, learning_rate=0.02, seed=0)
    losses = train(network, answers(network), schedule, tmp_path, silent)
    assert losses[-1] < 0.1 * losses[0]
    assert [list(found) for found in TorchEngine(network).sample(contexts(), 1, 0.0)] == [
        ["wait0"],
        ["wait1"],
        ["wait2"],
    ]


def test_batches_laid_out_ahead_teach_the_same(either: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As beside a GPU, by a thread: the same bytes."""
    found = []
    for name, devices in (("alone", ()), ("ahead", ("cpu",))):
        monkeypatch.setattr(training, "_LAYS_AHEAD", devices)
        network = fresh(either)
        history = train(network, answers(network), replace(SCHEDULE, updates=5), tmp_path / name, silent)
        found.append((history, trained_of(network)))
    (losses, weights), (expected, others) = found
    assert losses == expected
    assert all(torch.equal(weight, others[name]) for name, weight in weights.items())


def test_an_adapter_is_given_bfloat16_and_learns_the_same(either: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against peft's own way, which casts to float32, and autocast back."""

    def learnt() -> tuple[float, dict[str, Tensor], set[torch.dtype]]:
        network, given = fresh(either, dtype="bfloat16"), set()
        for name, module in network.model.named_modules():
            if name.endswith("lora_A.default"):
                module.register_forward_pre_hook(lambda _, inputs: given.add(inputs[0].dtype))
        with network.autocast():
            value = loss(network, answers(network))
        value.backward()
        return value.item(), {name: weight.grad for name, weight in trained_of(network).items()}, given

    ours, gradients, given = learnt()
    monkeypatch.setattr(networks, "disable_input_dtype_casting", lambda *_: nullcontext())
    theirs, expected, cast = learnt()
    assert (given, cast) == ({torch.bfloat16}, {torch.float32})
    assert ours == theirs
    assert all(torch.equal(gradient, expected[name]) for name, gradient in gradients.items())


@pytest.mark.parametrize("stop", [3, 9, 17])
@pytest.mark.parametrize(("trained", "dtype"), [("lora", "float32"), ("full", "float32"), ("full", "bfloat16")])
def test_a_killed_training_ends_with_the_same_bytes(
    base: Path, tmp_path: Path, stop: int, trained: Method, dtype: str
) -> None:
    def killer(done: int, value: float) -> None:
        if done == stop:
            raise Killed

    whole = fresh(base, method=trained, dtype=dtype)
    losses = train(whole, answers(whole), SCHEDULE, tmp_path / "a", silent)

    broken = fresh(base, method=trained, dtype=dtype)
    with pytest.raises(Killed):
        train(broken, answers(broken), SCHEDULE, tmp_path / "b", killer)
    resumed, reported = fresh(base, method=trained, dtype=dtype), list[int]()
    again = train(resumed, answers(resumed), SCHEDULE, tmp_path / "b", lambda done, value: reported.append(done))

    assert again == losses
    assert reported[0] == stop // 8 * 8 + 1
    assert stored(whole, tmp_path / "whole") == stored(resumed, tmp_path / "resumed")


def stored(network: Network, folder: Path) -> dict[str, bytes]:
    """The files of a checkpoint."""
    folder.mkdir()
    save_tuned(network, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_in_bfloat16_small_updates_of_float32_weights_add_up(base: Path, tmp_path: Path, method: Method) -> None:
    """A rate that bfloat16 weights would not feel. Losses are those of float32, within its rounding."""
    losses, schedule = {}, replace(SCHEDULE, learning_rate=1e-6)
    for dtype in ("float32", "bfloat16"):
        network = fresh(base, method=method, dtype=dtype)
        before = {name: weight.clone() for name, weight in trained_of(network).items()}
        assert {weight.dtype for weight in before.values()} == {torch.float32}
        losses[dtype] = train(network, answers(network), schedule, tmp_path / dtype, silent)
        moved = [(weight - before[name]).abs().max() for name, weight in trained_of(network).items()]
        assert all(0 < change < 3e-5 for change in moved)
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)


def test_batches_hold_steps_of_one_trajectory(network: Network) -> None:
    """Three trajectories of six steps in batches of three: each is two batches of every pass, and no other's."""
    samples = [
        imitation(network, replace(context, instruction=goal), "wait") for goal in "abc" for context in journey(6)
    ]
    schedule = Schedule(updates=12, batch_rows=3, learning_rate=0.1, seed=1)
    batches = _batches(samples, 5, schedule)
    assert [len({sample.context.instruction for sample in batch}) for batch in batches] == [1] * 12
    for start in (0, 6):
        drawn = [id(sample) for batch in batches[start : start + 6] for sample in batch]
        assert sorted(drawn) == sorted(map(id, samples))
    assert batches[:6] != batches[6:]
    assert batches == _batches(samples, 5, schedule) != _batches(samples, 5, replace(schedule, seed=2))


def test_every_sample_is_drawn_whatever_the_batch(network: Network) -> None:
    samples = [imitation(network, context, "wait") for context in [*contexts(), *journey(9)]]
    batches = _batches(samples, 5, Schedule(updates=3, batch_rows=5, learning_rate=0.1, seed=1))
    assert sorted(len(batch) for batch in batches) == [2, 5, 5]
    assert {id(sample) for batch in batches for sample in batch} == set(map(id, samples))


def test_no_rows_is_refused(network: Network, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no rows"):
        train(network, [], SCHEDULE, tmp_path, silent)


def test_a_click_on_a_long_address_is_learnt_and_said(base: Path, tmp_path: Path) -> None:
    """A token a letter here; of Qwen2.5-VL's, a label of 80 letters takes 60."""
    network, action = fresh(base), f'click link "https://{"example/" * 9}" 540,1200'
    assert 40 < len(network.answer_tokens(action)) < MAX_ANSWER_TOKENS
    samples = [imitation(network, contexts()[0], action)]
    train(network, samples, Schedule(60, 1, 0.02, 0), tmp_path, silent)
    assert TorchEngine(network).sample(contexts()[:1], 1, 0.0) == [{action: 1}]


def test_actions_that_no_agent_can_say_are_told_once(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = fresh(base)
    actions = ["w" * 40, "w" * 41, *(f'type "{"w" * letters}"' for letters in (120, 121, 122))]
    samples = [imitation(network, contexts()[0], action) for action in actions]
    with caplog.at_level(logging.WARNING, "ratchet"):
        train(network, samples, Schedule(2, 2, 0.02, 0), tmp_path, silent)
    (said,) = caplog.messages
    assert said.startswith(
        "2 of 5 actions to learn are longer than an agent may say (128 tokens, 40 of them not in quotes); "
        'the longest, of 130: type "www'
    )
