from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import contexts
from torch import Tensor

from models.inference import TorchEngine
from models.network import Network, load_base
from models.packing import imitation
from models.training import Schedule, train
from models.tuning import WHOLE, Method, Tuning, method_of, save_tuned, trained, tunable, with_tuned

ACTIONS = [["wait", "complete", 'type "a longer one"'], ["complete"], ["scroll up", "wait"]]


def fresh(base: Path, method: Method, skip_layers: int = 0, seed: int = 0) -> Network:
    return tunable(load_base(str(base), "float32", 5), Tuning(method, 4, 8, skip_layers), seed)


def learn(network: Network, updates: int, scratch: Path) -> list[float]:
    samples = [imitation(network, context, f"wait{place}") for place, context in enumerate(contexts())]
    return train(network, samples, Schedule(updates, 2, 0.02, 7), scratch, lambda done, value: None)


def test_what_is_stored_answers_and_scores_as_what_was_trained(either: Path, method: Method, tmp_path: Path) -> None:
    network = fresh(either, method)
    learn(network, 20, tmp_path / "scratch")
    (tmp_path / "stored").mkdir()
    save_tuned(network, tmp_path / "stored")
    assert method_of(tmp_path / "stored") == method
    again = TorchEngine(with_tuned(load_base(str(either), "float32", 5), tmp_path / "stored"))
    assert again.sample(contexts(), 1, 0.0) == TorchEngine(network).sample(contexts(), 1, 0.0)
    trained_scores = TorchEngine(network).score(contexts(), ACTIONS)
    assert again.score(contexts(), ACTIONS) == [pytest.approx(row, abs=1e-5) for row in trained_scores]
    assert TorchEngine(load_base(str(either), "float32", 5)).score(contexts(), ACTIONS) != trained_scores


def test_training_goes_on_from_what_is_stored(base: Path, method: Method, tmp_path: Path) -> None:
    """With the same losses as training goes on from the network itself."""
    network = fresh(base, method, skip_layers=1)
    learn(network, 5, tmp_path / "first")
    (tmp_path / "stored").mkdir()
    save_tuned(network, tmp_path / "stored")
    again = with_tuned(load_base(str(base), "float32", 5), tmp_path / "stored", trainable=True)
    assert {name: weight.shape for name, weight in trained(again).items()} == {
        name: weight.shape for name, weight in trained(network).items()
    }
    assert learn(again, 5, tmp_path / "a") == learn(network, 5, tmp_path / "b")


def test_lora_is_on_the_upper_layers_of_the_language_model(base: Path) -> None:
    names = set(trained(fresh(base, "lora", skip_layers=2)))
    assert len(names) == 2 * 7
    assert all(".text_model.layers.2." in name for name in names)


def test_full_is_the_upper_layers_the_head_and_the_connector(base: Path) -> None:
    network = fresh(base, "full", skip_layers=2)
    upper = {name for name, _ in network.model.named_parameters() if name.startswith("model.text_model.layers.2.")}
    others = {"model.text_model.norm.weight", "lm_head.weight", "model.connector.modality_projection.proj.weight"}
    assert len(upper) == 9
    assert set(trained(network)) == upper | others


def test_full_of_qwen_without_skipped_layers_is_all_but_the_tower(qwen: Path) -> None:
    network = fresh(qwen, "full")
    frozen = {name for name, weight in network.model.named_parameters() if not weight.requires_grad}
    assert frozen == {
        name
        for name, _ in network.model.named_parameters()
        if name.startswith("model.visual.") and not name.startswith("model.visual.merger.")
    }
    assert "model.language_model.embed_tokens.weight" in trained(network)


def test_only_what_is_trained_changes_and_is_stored(base: Path, tmp_path: Path) -> None:
    before = load_base(str(base), "float32", 5).model.state_dict()
    network = fresh(base, "full", skip_layers=1)
    learn(network, 3, tmp_path / "scratch")
    changed = {name for name, weight in network.model.named_parameters() if not torch.equal(weight, before[name])}
    assert changed == set(trained(network))
    save_tuned(network, tmp_path)
    assert set(load_file(tmp_path / WHOLE)) == changed


def test_a_bfloat16_base_runs_what_was_trained_in_float32(base: Path, tmp_path: Path) -> None:
    network = tunable(load_base(str(base), "bfloat16", 5), Tuning("full", 4, 8, 0), 0)
    learn(network, 20, tmp_path / "scratch")
    save_tuned(network, tmp_path)
    assert {weight.dtype for weight in load_file(tmp_path / WHOLE).values()} == {torch.float32}
    served = with_tuned(load_base(str(base), "bfloat16", 5), tmp_path)
    assert {weight.dtype for weight in served.model.parameters()} == {torch.bfloat16}
    expected = TorchEngine(with_tuned(load_base(str(base), "float32", 5), tmp_path)).score(contexts(), ACTIONS)
    for row, found in zip(expected, TorchEngine(served).score(contexts(), ACTIONS), strict=True):
        assert found == pytest.approx(row, abs=0.05)


def test_a_new_lora_is_fixed_by_its_seed(base: Path) -> None:
    def start(seed: int) -> list[Tensor]:
        torch.rand(seed + 1)  # whatever was drawn before
        return [weight for name, weight in trained(fresh(base, "lora", seed=seed)).items() if "lora_A" in name]

    first, again, other = start(3), start(3), start(4)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_base_without_verdict_tokens_loads_the_same_every_time(base: Path) -> None:
    first, again = (load_base(str(base), "float32", 5).model.state_dict() for _ in range(2))
    assert [name for name in first if not torch.equal(first[name], again[name])] == []


def test_no_layer_left_is_refused(base: Path, method: Method) -> None:
    with pytest.raises(ValueError, match=r"tune\.skip_layers = 3: the base has 3 layers"):
        fresh(base, method, skip_layers=3)
