"""``params.yaml``, typed: each field with its bound and unit. Unknown keys and wrong values are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from environments.goalfile import Section
from models.roles import Together
from tasks.acceptance import Bar
from tasks.errors import ParamsError
from tasks.evidence.looks import HELD_OUT, most
from tasks.generators import Generator

PARAMS = Path("params.yaml")


class Numerics(Section):
    """What fixes the bytes of a computation on CPU."""

    threads: int = Field(ge=1, le=64)
    isa: Literal["avx2", "native"]
    dtype: Literal["float32", "bfloat16"]


class Engine(Section):
    """What runs the models in explore, score, attack and evaluate: ``torch`` in the workers, or a ``vllm`` server.

    ``workers`` is how many processes play and judge, None for as many as the machine has room for
    (:func:`tasks.workers.hands`); ``url`` is the address of a vLLM server that runs already, and without one a stage
    starts its own (`make vllm`).
    """

    kind: Literal["torch", "vllm"]
    workers: int | None = Field(default=None, ge=1, le=256)
    url: str = Field(pattern=r"^(https?://[^/]+/?)?$")

    @model_validator(mode="after")
    def _url_of_vllm(self) -> Engine:
        if self.url and self.kind != "vllm":
            raise ValueError(f"url {self.url} is for kind: vllm, but kind is {self.kind}")
        return self


class Base(Section):
    """Of each model: ``embedded`` (built from a PyPI package), a directory, or a name on the model hub."""

    agent: str = Field(min_length=1)
    reward: str = Field(min_length=1)

    @property
    def embedded(self) -> bool:
        """Whether both are."""
        return self.agent == self.reward == "embedded"


class Prompt(Section):
    """``screenshots``: past screenshots in a prompt, the current one not counted."""

    screenshots: int = Field(ge=0, le=16)


class Tune(Section):
    """What is trained of the language model above ``skip_layers`` lower layers (:class:`models.tuning.Tuning`).

    ``rank`` and ``alpha`` are those of ``lora``; ``full`` has none.
    """

    method: Literal["lora", "full"]
    rank: int = Field(ge=1, le=512)
    alpha: int = Field(ge=1, le=1024)
    skip_layers: int = Field(ge=0)


class Demonstrate(Section):
    """``per_goal`` successful oracle episodes, and ``calibration`` more, of goals up to ``hardest_tier``.

    Both come from at most ``max_tries`` seeds.
    """

    per_goal: int = Field(ge=1)
    calibration: int = Field(ge=0)
    max_tries: int = Field(ge=1)
    hardest_tier: int | None = Field(ge=1)

    @model_validator(mode="after")
    def _enough_tries(self) -> Demonstrate:
        if self.max_tries < self.per_goal + self.calibration:
            raise ValueError(
                f"max_tries {self.max_tries} must be at least per_goal {self.per_goal} + calibration {self.calibration}"
            )
        return self


class Rehearse(Section):
    """``exercises`` on random pages, which the agent goes over again; for a base that was not taught by them, 0."""

    exercises: int = Field(ge=0, le=10_000)


class Attack(Section):
    """``steps`` of the demonstrations are attacked, and ``per_step`` of what is liked there is learnt as wrong."""

    steps: int = Field(ge=1)
    per_step: int = Field(ge=1)


class Train(Section):
    """``updates`` optimizer steps of ``batch_rows`` rows; the learning rate is the peak of a cosine."""

    updates: int = Field(ge=1)
    batch_rows: int = Field(ge=1)
    learning_rate: float = Field(gt=0, lt=1)


class Retrain(Train):
    """``replay``: the share of rows drawn from the corpus, the rest being the round's own."""

    replay: float = Field(ge=0, lt=1)


class RetrainAgent(Retrain):
    """``known``: actions that the champion gives this likelihood, or a higher one, are not trained on.

    ``preference``: beta of preferring right candidates to wrong ones, beside imitation; null is imitation alone.

    Direct preference optimisation (Rafailov et al. 2023), on the steps of which reward rows know both. Beta weighs the
    divergence from the champion. Every eighth of these steps is held back: when their loss rises, the training ends.
    """

    known: float = Field(gt=0, le=1)
    preference: float | None = Field(gt=0, le=10)


class RetrainReward(Retrain):
    """``frozen``: the champion stays as it is, and the agent alone learns (UI-Genie's table 4, without iteration)."""

    frozen: bool


class Reward(Section):
    """``ranking``: the weight of ranking the candidates of a step, beside judging each (:mod:`models.packing`).

    ``members`` of an ensemble, of which the scores ``together`` are those of :class:`models.roles.Ensemble`.
    """

    ranking: float = Field(ge=0, le=100)
    members: int = Field(ge=1, le=16)
    together: Together


class Propose(Section):
    """``per_goal``: goal instances of a round, as a mean over the goals; null as ``hardest_tier`` is all tiers.

    ``opening``: tiers whose goals get more than one instance from the first round on (:mod:`tasks.curriculum`).
    ``new``: the share of them that ask for something else where a path was solved; ``proposer`` is ``recombine``,
    ``compose``, or the name of a language model at ``OPENAI_BASE_URL`` (:mod:`tasks.curriculum.proposers`).
    """

    per_goal: int = Field(ge=1)
    new: float = Field(ge=0, le=1)
    proposer: str = Field(min_length=1)
    opening: int = Field(ge=1)
    hardest_tier: int | None = Field(ge=1)


class Explore(Section):
    """The search: UI-Genie samples 10 candidates, keeps a beam of 5 paths and rolls 5 continuations.

    ``best_of_n`` samples ``paths`` whole paths instead. ``prior`` is what a beam makes of a candidate's share of the
    samples, beside its reward. The budgets are of one goal instance; actions of replays
    are not counted, and what ``budget_seconds`` cuts short depends on the machine.
    ``balance`` is the number of right paths wanted of an instance: from the second round on temperature and
    ``filter.accept`` are those that came nearest to it (:mod:`tasks.curriculum.balance`); null leaves them as they are.
    """

    method: Literal["beam", "best_of_n"]
    candidates: int = Field(ge=1, le=64)
    paths: int = Field(ge=1, le=64)
    prior: float = Field(ge=0, le=100)
    temperature: float = Field(gt=0, le=5)
    balance: int | None = Field(ge=1)
    rollouts: int = Field(ge=0, le=64)
    continue_paths: int = Field(ge=0, le=64)
    budget_steps: int | None = Field(ge=1)
    budget_seconds: float | None = Field(gt=0)


class Filter(Section):
    """Which trajectories and rows are kept; ``without`` names generators of reward rows that are switched off.

    A path counts as solved with an outcome reward of ``accept`` and rewards of ``min_step`` in each of its steps
    (:mod:`tasks.acceptance`), and where ``quoted`` is set, only if it typed or saw what its instruction quotes
    (:mod:`tasks.quoted`). Of a failed path that was continued to success the agent learns the steps that have it.
    """

    accept: float = Field(ge=0, le=1)
    min_step: float = Field(ge=0, le=1)
    quoted: bool
    max_per_goal: int = Field(ge=1)
    max_negatives: int = Field(ge=1)
    without: list[Annotated[Generator, Field(strict=False)]]

    @property
    def bar(self) -> Bar:
        """What a path must reach to count as solved."""
        return Bar(self.accept, self.min_step, self.quoted)


class Validate(Section):
    """Bounds of the share of positive reward rows, 0..1."""

    min_positive: float = Field(ge=0, le=1)
    max_positive: float = Field(ge=0, le=1)


class Evaluate(Section):
    """``first_seed``: seeds from here on are held out from all training.

    ``pairs_per_goal`` oracle episodes of each goal give the reward models' held-out pairs. The agents play
    ``per_goal`` instances of each goal, in the mean, in each of at most ``looks`` looks, and 500 of a goal in all.
    """

    per_goal: int = Field(ge=1, le=HELD_OUT)
    looks: int = Field(ge=1, le=50)
    pairs_per_goal: int = Field(ge=1, le=HELD_OUT)
    first_seed: int = Field(ge=1)

    @model_validator(mode="after")
    def _seeds_of_a_round(self) -> Evaluate:
        if (reached := most(self.per_goal, self.looks)) > HELD_OUT:
            asked = f"per_goal {self.per_goal} in {self.looks} looks"
            raise ValueError(f"{asked}: may reach {reached} instances of a goal, of {HELD_OUT}")
        return self


class Limits(Section):
    """Alarms (:mod:`tasks.evidence.monitors`): a figure beyond its limit stops a promotion; null is no limit.

    ``pass_k``, ``diversity`` and ``separation`` must not be lower, the others not higher.
    Of ``pass_k``, ``separation``, ``accepted_wrong`` and ``wrong_slope`` it is the whole of the 95 % interval that must
    not be.
    """

    pass_k: float | None = Field(ge=0, le=1)
    diversity: float | None = Field(ge=1)
    separation: float | None = Field(ge=-1, le=1)
    accepted_wrong: float | None = Field(ge=0, le=1)
    wrong_slope: float | None = Field(ge=-1, le=1)
    distance: float | None = Field(ge=0, le=1)
    kl: float | None = Field(ge=0)


class Decide(Section):
    """``alpha``: the level of the paired test, the share of false promotions allowed; ``limits`` stop promotion too."""

    alpha: float = Field(gt=0, lt=1)
    limits: Limits


class Params(Section):
    """The whole file."""

    seed: int = Field(ge=0, lt=2**31)
    goals: str
    numerics: Numerics
    engine: Engine
    base: Base
    prompt: Prompt
    tune: Tune
    demonstrate: Demonstrate
    rehearse: Rehearse
    reward: Reward
    warm_agent: Train
    warm_reward: Train
    propose: Propose
    explore: Explore
    filter: Filter
    attack: Attack
    train_reward: RetrainReward
    train_agent: RetrainAgent
    validation: Validate = Field(alias="validate")
    evaluate: Evaluate
    decide: Decide

    @model_validator(mode="after")
    def _lora_on_vllm(self) -> Params:
        if self.engine.kind == "vllm" and self.tune.method != "lora":
            raise ValueError(f"engine.kind vllm runs LoRA alone, but tune.method is {self.tune.method}")
        return self

    @model_validator(mode="after")
    def _one_base_on_a_server(self) -> Params:
        if self.engine.url and self.base.agent != self.base.reward:
            raise ValueError(
                f"the server at engine.url has one base, but base.agent is {self.base.agent} and base.reward is "
                f"{self.base.reward}; leave engine.url empty"
            )
        return self


def load_params(path: Path = PARAMS) -> Params:
    """Read and check the file.

    Raises:
        ParamsError: one line with every wrong key, its value and the rule.
    """
    try:
        return Params.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ParamsError(f"{path}: not found; run this in the folder of a Ratchet checkout") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        wrong = "; ".join(_describe(problem["loc"], problem["msg"], problem["input"]) for problem in error.errors())
        raise ParamsError(f"{path}: {wrong}; mend it and run the command again") from error


def _describe(where: tuple[int | str, ...], rule: str, value: object) -> str:
    key = ".".join(map(str, where)) or "the file"
    shown = "" if isinstance(value, dict) else f" = {value!r}"
    return f"{key}{shown}: {rule[:1].lower()}{rule[1:]}"
