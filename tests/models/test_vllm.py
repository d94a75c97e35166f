"""A real vLLM server on a tiny base against the engine in this process: the same checkpoints, both in float32."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from tiny import SERVABLE, build_tiny_base, build_tiny_qwen, contexts

from environments.registry import load_goals, open_world
from environments.types import Instance
from models.calibration import read_calibration
from models.engine import MIN_P, Engine, EngineError, Served, Source
from models.inference import TorchEngine
from models.network import Network, load_base, save
from models.packing import imitation
from models.prompts import context_at
from models.roles import Agent, RewardModel, load_reward_model
from models.training import Schedule, train
from models.tuning import Tuning, save_tuned, tunable, with_tuned
from models.vllm import Server, VllmEngine
from tasks.base import BASE, EMBEDDED
from tasks.demonstrate import demonstrate
from tasks.explore import explore
from tasks.files import STATE, read_json, write_json
from tasks.params import Engine as EngineParams
from tasks.params import Params, Prompt, load_params
from tasks.score import score_episode
from tasks.search.rollout import greedy
from tasks.workers.serving import _named, engines

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

CHECKOUT = Path(__file__).parents[2]
TOLERANCE = 1e-4  # of a score in 0..1; both engines add up float32 numbers, each in an order of its own
ACTIONS = [["wait", "complete", 'type "a longer one"'], ["complete"], ["scroll up", "wait"]]
SCREENSHOTS = 5  # past ones in a prompt
AGENT, REWARD = STATE / "agent", STATE / "reward"
QWEN_PROCESSOR = "Qwen2_5_VLProcessor"


@pytest.fixture(scope="module")
def params() -> Params:
    """Those of the repository, on a vLLM server of the stage's own."""
    found = load_params(CHECKOUT / "params.yaml")
    goals = str(CHECKOUT / "data/goals/more.yaml")
    several = Prompt(screenshots=SCREENSHOTS)
    return found.model_copy(update={"engine": EngineParams(kind="vllm", url=""), "goals": goals, "prompt": several})


@pytest.fixture(scope="module")
def instances(params: Params) -> list[Instance]:
    return [Instance(load_goals(Path(params.goals))["click-test-2"], seed) for seed in range(3)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, instances: list[Instance]) -> Iterator[Path]:
    """A workspace with a tiny base, without verdict tokens of its own, and two champions; the current directory."""
    assert (CHECKOUT / ".ratchet/vllm").exists(), "run `make vllm`"
    root = _furnished(tmp_path_factory.mktemp("workspace"))
    build_tiny_base(root / BASE / EMBEDDED, SERVABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        save_tuned(_taught(instances, root / "scratch"), AGENT)
        save_tuned(_random(seed=2), REWARD)
        yield root


@pytest.fixture(scope="module")
def source(workspace: Path, params: Params) -> Iterator[Source]:
    with engines("test", params, [AGENT, REWARD]) as found:
        yield found


def _furnished(root: Path) -> Path:
    """A workspace but for the base."""
    (root / ".ratchet").mkdir()
    (root / ".ratchet/vllm").symlink_to(CHECKOUT / ".ratchet/vllm")
    write_json(root / BASE / "bases.json", {role: {"model": EMBEDDED, "digest": ""} for role in ("agent", "reward")})
    return root


def _base(dtype: str = "float32") -> Network:
    return load_base(str(BASE / EMBEDDED), dtype, SCREENSHOTS)


def _random(seed: int) -> Network:
    network = tunable(_base(), Tuning("lora", rank=4, alpha=8, skip_layers=1), seed)
    for name, weight in network.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return network


def _taught(instances: list[Instance], scratch: Path) -> Network:
    """An agent that has seen the oracle do these instances, so that it has something to propose."""
    network, samples = tunable(_base(), Tuning("lora", rank=16, alpha=32, skip_layers=0), 0), []
    with closing(open_world(instances[0].goal.world)) as world:
        for instance in instances:
            episode = demonstrate(world, instance)
            for place, step in enumerate(episode.steps):
                context = context_at(episode.instruction, episode.steps[:place], step.observation)
                samples.append(imitation(network, context, str(step.action)))
    train(network, samples, Schedule(100, 3, 0.01, 0), scratch, lambda done, loss: None)
    return network


def in_process(adapter: Path, dtype: str = "float32") -> TorchEngine:
    return TorchEngine(with_tuned(_base(dtype), adapter))


def assert_same_scores(first: Engine, second: Engine) -> None:
    for row, expected in zip(first.score(contexts(), ACTIONS), second.score(contexts(), ACTIONS), strict=True):
        assert row == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("adapter", [AGENT, REWARD])
def test_greedy_answers_are_the_same(source: Source, adapter: Path) -> None:
    expected = in_process(adapter).sample(contexts(), 1, 0.0)
    assert source.engine(adapter).sample(contexts(), 1, 0.0) == expected
    assert source.engine(adapter).sample(contexts(), 3, 0.0) == in_process(adapter).sample(contexts(), 3, 0.0)


@pytest.mark.parametrize("adapter", [AGENT, REWARD])
def test_scores_are_the_same(source: Source, adapter: Path) -> None:
    assert_same_scores(source.engine(adapter), in_process(adapter))


def test_no_candidates_have_no_scores(source: Source) -> None:
    assert source.engine(REWARD).score(contexts(), [[], ["wait"], []])[::2] == [[], []]


def test_samples_follow_the_seed_and_the_softmax(source: Source) -> None:
    """First letters of 640 answers against the in-process probabilities, the unlikely left out: within 5 sigma."""
    engine, network = source.engine(REWARD), with_tuned(_base(), REWARD)
    context, temperature = contexts()[1], 0.7
    draws = [engine.sample([context, context], 64, temperature, seed) for seed in "aabcdf"]
    assert draws[0] == draws[1] != draws[2]
    assert draws[0][0] != draws[0][1]
    assert {drawn.total() for pair in draws for drawn in pair} == {64}

    answers = sum((drawn for pair in draws[1:] for drawn in pair), Counter[str]())
    with torch.no_grad():
        logits = network.model(**network.tensors(context)).logits[0, -1]
    odds = (logits / temperature).softmax(-1)
    odds = odds.where(odds >= MIN_P * odds.max(), 0.0)
    odds = odds / odds.sum()
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
        share = odds[network.processor.tokenizer.convert_tokens_to_ids(letter)].item()
        found = sum(count for text, count in answers.items() if text.startswith(letter))
        assert abs(found - 640 * share) < 5 * (640 * share * (1 - share)) ** 0.5 + 1


def test_one_of_the_samples_is_the_likeliest_answer(source: Source) -> None:
    engine = source.engine(AGENT)
    drawn = engine.sample(contexts(), 3, 1.0, "a")
    greedy = engine.sample(contexts(), 1, 0.0)
    assert engine.sample(contexts(), 4, 1.0, "a", likeliest=True) == [a + b for a, b in zip(greedy, drawn, strict=True)]


def test_a_new_checkpoint_in_the_same_folder_reaches_the_running_server(source: Source, tmp_path: Path) -> None:
    """What a promotion does between two rounds; what is loaded stays what it was."""
    before = source.engine(REWARD).score(contexts(), ACTIONS)
    shutil.copytree(REWARD, tmp_path / "old")
    save_tuned(_random(seed=3), REWARD)
    with _named(Server(source.served[str(REWARD)].url), [REWARD]) as served:
        promoted = replace(source, served=served).engine(REWARD)
        assert_same_scores(promoted, in_process(REWARD))
        assert promoted.score(contexts(), ACTIONS) != before
    assert source.engine(REWARD).score(contexts(), ACTIONS) == before
    with pytest.raises(EngineError, match="does not exist"):
        promoted.score(contexts(), ACTIONS)
    shutil.rmtree(REWARD)
    shutil.copytree(tmp_path / "old", REWARD)


def test_a_server_that_reads_prompts_otherwise_is_refused(source: Source) -> None:
    engine = source.engine(AGENT)
    assert isinstance(engine, VllmEngine)
    engine._reader.processor.image_seq_len += 1
    with pytest.raises(EngineError, match="reads a prompt as other tokens"):
        engine.score(contexts(), ACTIONS)


def test_explore_on_the_server(source: Source, params: Params, instances: list[Instance]) -> None:
    """The stage's own function in a real world. Its scores are those of the engine in this process."""
    agent, judge = Agent(source.engine(AGENT)), load_reward_model(source, REWARD)
    found = explore(instances[0], agent, judge, params, 1, ("agent", "reward"))
    assert any(trajectory.episode.steps for trajectory in found)
    again = RewardModel(in_process(REWARD), read_calibration(REWARD))
    for trajectory in found:
        steps = tuple(replace(step, score=None) for step in trajectory.episode.steps)
        expected = score_episode(replace(trajectory.episode, steps=steps, outcome=None), again)
        scored = score_episode(trajectory.episode, judge)
        assert [step.score for step in scored.steps] == pytest.approx([s.score for s in expected.steps], abs=TOLERANCE)
        assert scored.outcome == pytest.approx(expected.outcome, abs=TOLERANCE)


def test_greedy_episodes_are_the_same(source: Source, instances: list[Instance]) -> None:
    served = greedy(Agent(source.engine(AGENT)), instances)
    assert served == greedy(Agent(in_process(AGENT)), instances)
    assert any(verdict for _, verdict in served)


def test_the_server_ends_with_its_stage(workspace: Path, params: Params) -> None:
    """After kill -9 of the stage no process and no shared memory is left, and who still asks gets one clear error."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tasks.params import Params\n"
        "from tasks.workers.serving import engines\n"
        f"params = Params.model_validate_json({params.model_dump_json(by_alias=True)!r})\n"
        f"with engines('test', params, [Path({str(REWARD)!r})]) as source:\n"
        f"    print(*source.served[{str(REWARD)!r}], flush=True)\n"
        "    sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdin=pipe, stdout=pipe) as stage:
        assert stage.stdout is not None
        url, name = stage.stdout.readline().decode().split()
        served = {str(REWARD): Served(url, name)}
        own = Source({"reward": str(BASE / EMBEDDED)}, "float32", 5, served).engine(REWARD)
        assert_same_scores(own, in_process(REWARD))
        started = psutil.Process(stage.pid).children(recursive=True)
        shared = {
            Path(region.path) for process in started for region in process.memory_maps() if "/shm/" in region.path
        }
        shared = {path for path in shared if path.exists()}
        stage.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(started, timeout=60)
    assert len(started) >= 3
    assert not alive
    assert shared
    assert not [path for path in shared if path.exists()]
    with pytest.raises(EngineError, match=rf"^{url}: the vLLM server does not answer"):
        own.score(contexts(), ACTIONS)


def test_no_server_at_the_named_address_is_refused(workspace: Path, params: Params) -> None:
    nowhere = params.model_copy(update={"engine": EngineParams(kind="vllm", url="http://127.0.0.1:1")})
    with (
        pytest.raises(EngineError, match=r"engine.url = 'http://127.0.0.1:1': no vLLM server"),
        engines("test", nowhere, [AGENT]),
    ):
        pass


def test_qwen_is_served_as_it_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, params: Params) -> None:
    """A base without verdict tokens, its images' settings in a file of their own, and nothing said of videos."""
    monkeypatch.chdir(_furnished(tmp_path))
    base = build_tiny_qwen(BASE / EMBEDDED)
    settings = read_json(base / "processor_config.json")
    write_json(base / "preprocessor_config.json", settings["image_processor"] | {"processor_class": QWEN_PROCESSOR})
    (base / "processor_config.json").unlink()
    save_tuned(_random(seed=2), REWARD)
    with engines("test", params, [REWARD]) as source:
        served = source.engine(REWARD)
        assert_same_scores(served, in_process(REWARD))
        assert served.sample(contexts(), 1, 0.0) == in_process(REWARD).sample(contexts(), 1, 0.0)


def test_scores_in_bfloat16_are_not_in_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, params: Params
) -> None:
    """Both verdicts' logits are near 400, where those are 2 wide: five of the six actions would be judged alike."""
    monkeypatch.chdir(_furnished(tmp_path))
    _raise_verdicts(build_tiny_base(BASE / EMBEDDED, SERVABLE))
    save_tuned(_random(seed=2), REWARD)
    half = params.model_copy(update={"numerics": params.numerics.model_copy(update={"dtype": "bfloat16"})})
    expected = in_process(REWARD, "bfloat16").score(contexts(), ACTIONS)
    with engines("test", half, [REWARD]) as source:
        found = source.engine(REWARD).score(contexts(), ACTIONS)
    assert found == [pytest.approx(row, abs=0.05) for row in expected]
    assert len({round(score, 3) for row in found for score in row}) == 6


def _raise_verdicts(base: Path) -> None:
    """Give the base verdict tokens whose logits are near each other and high, after an answer to a context."""
    network = _base()
    context = contexts()[0]
    shown = network.tensors(context)
    shown["input_ids"] = torch.cat([shown["input_ids"], torch.tensor([network.answer_tokens("wait")])], dim=1)
    shown["attention_mask"] = torch.ones_like(shown["input_ids"])
    with torch.no_grad():
        hidden = network.hidden(**shown).last_hidden_state[0, -1]
        network.model.get_output_embeddings().weight[list(network.verdicts)] += 400 * hidden / hidden.square().sum()
    save(network, base)
