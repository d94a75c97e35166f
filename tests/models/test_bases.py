"""Agent and reward model on bases of their own, through the stage that notes them and what loads them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import contexts
from transformers import (
    AutoImageProcessor,
    Lfm2VlConfig,
    PreTrainedConfig,
    Qwen2_5_VLConfig,
    Qwen2VLImageProcessorPil,
    Qwen3_5Config,
    Qwen3VLConfig,
)
from transformers.models.auto import image_processing_auto
from transformers.utils import is_torchvision_available

from models.engine import EngineError
from models.half import halved
from models.inference import TorchEngine
from models.network import has_verdicts, load_base, load_reader
from models.tuning import Tuning, save_tuned, tunable, with_tuned
from tasks import base as stage
from tasks.base import BASE, location
from tasks.errors import ParamsError
from tasks.files import STATE, copy, digest, read_json, write_json
from tasks.params import Base, Params, load_params
from tasks.workers.serving import _servable, alike, command_of, engines

ACTIONS = [["wait", "complete"], ["complete"], ["scroll up"]]
AGENT, REWARD = STATE / "agent", STATE / "reward"


@pytest.fixture
def params() -> Params:
    return load_params(Path(__file__).parents[2] / "params.yaml")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def note(params: Params, agent: Path, reward: Path) -> None:
    """Run the stage, and put a champion of each role in the state: whole layers, and a LoRA."""
    stage.run(params.model_copy(update={"base": Base(agent=str(agent), reward=str(reward))}))
    for folder, method in ((AGENT, "full"), (REWARD, "lora")):
        folder.mkdir(parents=True)
        network = load_base(location(folder.name), "float32", 5)
        save_tuned(tunable(network, Tuning(method, 4, 8, 1), 0), folder)


def test_each_role_has_the_base_it_was_given(workspace: Path, params: Params, base: Path, qwen: Path) -> None:
    note(params, qwen, base)
    assert (location("agent"), location("reward")) == (str(qwen), str(base))
    noted = read_json(BASE / "bases.json")
    assert {role: found["digest"] for role, found in noted.items()} == {"agent": digest(qwen), "reward": digest(base)}
    assert [path.name for path in BASE.iterdir()] == ["bases.json"]


def test_a_base_whose_files_changed_since_is_refused(workspace: Path, params: Params, base: Path) -> None:
    copy(base, mine := workspace / "mine")
    note(params, mine, base)
    (mine / "config.json").write_text((mine / "config.json").read_text() + "\n")
    assert location("reward") == str(base)
    was, now = digest(base), digest(mine)
    with pytest.raises(ParamsError, match=f"base.agent = {mine}: its files have the digest {now}, .* from {was}; put"):
        location("agent")


@pytest.mark.skipif(is_torchvision_available(), reason="then it loads")
def test_a_base_whose_processor_wants_what_is_not_installed_is_refused(
    workspace: Path, params: Params, base: Path, qwen: Path
) -> None:
    copy(qwen, older := workspace / "qwen2-vl")
    for name, renamed in {"config.json": '"qwen2_vl"', "preprocessor_config.json": '"qwen2_vl"'}.items():
        if (file := older / name).exists():
            file.write_text(file.read_text().replace('"qwen2_5_vl"', renamed))
    for name in ("processor_config.json", "preprocessor_config.json"):
        if (file := older / name).exists():
            file.write_text(file.read_text().replace("Qwen2_5_VLProcessor", "Qwen2VLProcessor"))
    with pytest.raises(ParamsError, match=f"base.agent = {older}: its processor does not load: .*[Tt]orchvision"):
        stage.run(params.model_copy(update={"base": Base(agent=str(older), reward=str(base))}))


def test_the_code_of_a_base_is_never_run(
    workspace: Path, params: Params, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when whoever sits at the terminal would agree to it."""
    copy(base, theirs := workspace / "theirs")
    config = read_json(theirs / "config.json") | {
        "model_type": "theirs",
        "auto_map": {"AutoConfig": "code.Theirs", "AutoModelForImageTextToText": "code.Theirs"},
    }
    write_json(theirs / "config.json", config)
    (theirs / "code.py").write_text(f"open({str(workspace / 'ran')!r}, 'w')\n")
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(ParamsError, match=f"base.agent = {theirs}: .*custom code"):
        stage.run(params.model_copy(update={"base": Base(agent=str(theirs), reward=str(base))}))
    assert not (workspace / "ran").exists()


def test_a_name_on_the_hub_is_noted_without_a_hash(
    workspace: Path, params: Params, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was fetched before: the hub is not asked."""
    cache = workspace / "hub"
    fetched = cache / "models--some--model"
    copy(base, fetched / "snapshots/abc")
    (fetched / "refs").mkdir()
    (fetched / "refs/main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    stage.run(params.model_copy(update={"base": Base(agent="some/model", reward=str(base))}))
    assert location("agent") == "some/model"
    assert read_json(BASE / "bases.json")["agent"]["digest"] == ""


def test_a_model_that_is_nowhere_is_refused_with_its_key(
    workspace: Path, params: Params, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for wrong in ("models/qwen", "some/model"):
        with pytest.raises(ParamsError, match=f"base.reward = {wrong}: neither a directory with a model nor a name"):
            stage.run(params.model_copy(update={"base": Base(agent=str(base), reward=wrong)}))
    assert not BASE.exists()


def test_engines_run_each_checkpoint_on_its_base(workspace: Path, params: Params, base: Path, qwen: Path) -> None:
    note(params, qwen, base)
    with engines("explore", params, [AGENT, REWARD]) as source:
        for folder, start in ((AGENT, qwen), (REWARD, base)):
            network = halved(with_tuned(load_base(str(start), "float32", params.prompt.screenshots), folder))
            expected = TorchEngine(network).score(contexts(), ACTIONS)
            assert source.engine(folder).score(contexts(), ACTIONS) == expected


def test_there_is_a_server_for_each_base(workspace: Path, params: Params, base: Path, qwen: Path) -> None:
    """By their commands: the model each loads, the adapters it has room for, and its half of the memory."""
    note(params, base, base)
    save_tuned(tunable(load_base(str(base), "float32", 5), Tuning("lora", 12, 8, 1), 0), AGENT)
    (AGENT / "tuned.safetensors").unlink()
    with engines("explore", params, [AGENT, REWARD]) as source:
        assert alike(source, [AGENT, REWARD]) == [[AGENT, REWARD]]
        options = command_of(source, [AGENT, REWARD], 1, 1234)
    assert f"--model=.ratchet/served/{digest(base)}-float32" in options
    assert {"--max-loras=2", "--max-lora-rank=16", "--port=1234"} < set(options)
    assert {'--mm-processor-kwargs={"use_fast": false}', '--hf-overrides={"head_dtype": "float32"}'} < set(options)
    assert not [option for option in options if "memory" in option]

    stage.run(params.model_copy(update={"base": Base(agent=str(qwen), reward=str(base))}))
    with engines("explore", params, [AGENT, REWARD]) as source:
        assert alike(source, [AGENT, REWARD, AGENT]) == [[AGENT, AGENT], [REWARD]]
        options = command_of(source, [AGENT], 1 / 2, 1234)
    assert f"--model=.ratchet/served/{digest(qwen)}-float32" in options
    assert {"--max-loras=1", "--gpu-memory-utilization=0.45"} < set(options)


def test_a_served_copy_of_qwen_names_its_whole_processor(workspace: Path, qwen: Path) -> None:
    """A server has the torchvision that its video half needs; it is made beside the GPU, not on it."""
    copy = Path(_servable(str(qwen), "float32"))
    written = read_json(copy / "processor_config.json")
    assert written["processor_class"] == "Qwen2_5_VLProcessor"
    assert written["video_processor"] == {"video_processor_type": "Qwen2VLVideoProcessor"}
    assert has_verdicts(str(copy))
    assert not torch.cuda.is_initialized()
    for there, here in zip(_shown(qwen), _shown(copy), strict=True):
        assert torch.equal(there, here)


def test_pictures_are_prepared_by_pillow_though_torchvision_is_there(
    qwen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server is told to (``use_fast``); left to itself, transformers would take torchvision's class."""

    class OfTorchvision(Qwen2VLImageProcessorPil):
        pass

    def named(name: str) -> type | None:
        return OfTorchvision if name == "Qwen2VLImageProcessor" else found(name)

    found = image_processing_auto.get_image_processor_class_from_name
    monkeypatch.setattr(image_processing_auto, "get_image_processor_class_from_name", named)
    monkeypatch.setattr(image_processing_auto, "is_torchvision_available", lambda: True)
    assert type(AutoImageProcessor.from_pretrained(qwen)) is OfTorchvision
    assert type(load_reader(str(qwen), 5).processor.image_processor) is Qwen2VLImageProcessorPil


def _shown(base: Path) -> list[torch.Tensor]:
    return list(load_reader(str(base), 5).tensors(contexts()[1]).values())


def test_a_base_is_loaded_where_it_is_told(base: Path) -> None:
    assert load_base(str(base), "float32", 0, "meta").model.device.type == "meta"


def test_a_tower_that_feeds_later_layers_is_refused(tmp_path: Path) -> None:
    """Qwen3-VL's, before its weights are read."""
    Qwen3VLConfig(vision_config={"deepstack_visual_indexes": [1, 2]}).save_pretrained(tmp_path)
    with pytest.raises(EngineError, match=r"deepstack_visual_indexes, as Qwen3-VL's.*set base.agent and base.reward"):
        load_base(str(tmp_path), "float32", 0)


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (Qwen3_5Config(), "linear_attention"),
        (
            Lfm2VlConfig(
                text_config={"model_type": "lfm2", "num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}
            ),
            "conv",
        ),
        (Qwen2_5_VLConfig(text_config={"use_sliding_window": True, "max_window_layers": 1}), "sliding_attention"),
    ],
)
def test_layers_that_do_not_mind_the_mask_are_refused(tmp_path: Path, config: PreTrainedConfig, kind: str) -> None:
    """Before the weights are read."""
    config.save_pretrained(tmp_path)
    with pytest.raises(EngineError, match=f"it has layers of {kind} .*; set base.agent and base.reward"):
        load_base(str(tmp_path), "float32", 0)
