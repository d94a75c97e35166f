"""Promotion by paired tests, the next state, and the figures of the evaluation."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
from declared import only_declared_params
from small_round import goal, params, rows_of, trajectory, write_curriculum, write_round_rows

from environments.types import Action, Candidate, End, Kind
from tasks import decide
from tasks.acceptance import Bar
from tasks.curriculum import Curriculum
from tasks.curriculum.balance import Setting
from tasks.curriculum.plan import Plan, Proposal
from tasks.errors import RecordError
from tasks.evidence.looks import Verdict
from tasks.evidence.metrics import Judgement, summarise, write_plots
from tasks.evidence.objections import surer
from tasks.files import digest, read_json, write_json
from tasks.records import Origin, read_trajectories
from tasks.train import train_reward

ROUND, STATE = Path("data/round"), Path("data/state")
NEXT = ROUND / "state"
QUIET: dict[str, list[str]] = {"agent": [], "reward": []}
USUAL = {"id": "t#0", "query": "step", "source": "pairs", "kind": "click", "label": True}


def _episodes(wins: int, losses: int, ties: int, look: int = 1) -> list[Verdict]:
    """Instances that only the challenger, only the champion, and both of them solved."""
    results = [(False, True)] * wins + [(True, False)] * losses + [(True, True)] * ties
    return [
        Verdict(look=look, goal="click-ok", tier=1, seed=1_000_000 + place, champion=champion, challenger=challenger)
        for place, (champion, challenger) in enumerate(results)
    ]


def _judgement(champion: float, challenger: float, **changes: Any) -> Judgement:
    return cast(Judgement, {**USUAL, "champion": champion, "challenger": challenger, **changes})


def _judgements(wins: int, losses: int) -> list[Judgement]:
    return [_judgement(0.4, 0.6)] * wins + [_judgement(0.6, 0.4)] * losses


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that is evaluated: champions in data/state, challengers in data/round."""
    monkeypatch.chdir(tmp_path)
    for folder, word in ((STATE, "champion"), (ROUND, "challenger")):
        for model in ("agent", "reward"):
            (folder / model / "adapter").mkdir(parents=True)
            (folder / model / "adapter" / "weights.bin").write_bytes(f"{word} {model}".encode() * 100)
            (folder / model / "config.json").write_text(json.dumps({"made_by": word}))
    made = [trajectory(0, 0.9), trajectory(1, 0.2, seed=10_001)]
    for_agent, for_reward = rows_of(made[0])
    write_round_rows(STATE / "corpus" / "seed", made[:1], for_agent, for_reward)
    write_round_rows(ROUND / "rows", made, for_agent, for_reward)
    write_round_rows(ROUND / "scored", made, [], [])
    write_curriculum(STATE / "curriculum.json", goal())
    Plan(1, [Proposal("click-ok", 10_000), Proposal("click-ok", 10_001)]).write()


def _evaluate(
    episodes: list[Verdict],
    judgements: list[Judgement],
    attacks: Sequence[Judgement] = (),
    canaries: Sequence[Judgement] = (),
    balance: int | None = None,
) -> dict[str, Any]:
    write_json(ROUND / "evaluation" / "episodes.json", episodes)
    write_json(ROUND / "evaluation" / "judgements.json", judgements)
    write_json(ROUND / "evaluation" / "attacks.json", attacks)
    write_json(ROUND / "evaluation" / "canaries.json", canaries)
    explored = {one.id: place == 0 for place, one in enumerate(read_trajectories(ROUND / "scored"))}
    write_json(ROUND / "evaluation" / "explored.json", {"verdicts": explored, "kl": 0.125})
    decide.run(params(evaluate={"looks": 1}, explore={"balance": balance}))
    decision: dict[str, Any] = read_json(ROUND / "decision.json")
    return decision


def test_a_better_agent_is_promoted_and_a_worse_reward_model_is_not() -> None:
    decision = _evaluate(_episodes(9, 1, 10), _judgements(2, 3))
    agent, reward = decision["agent"], decision["reward"]
    assert agent["promoted"] is True
    assert (agent["wins"], agent["losses"], agent["ties"]) == (9, 1, 10)
    assert agent["p_value"] == 11 / 1024
    assert agent["reason"] == (
        "promoted: 19 of 20 held-out goal instances solved, the champion 11 (9 won, 1 lost, 10 tied); "
        "p = 0.0107 is at most alpha = 0.05"
    )
    assert agent["champion"]["rate"] == 11 / 20
    assert agent["challenger"]["solved"] == 19
    assert reward["promoted"] is False
    assert reward["reason"] == (
        "not promoted: 2 of 5 judgements right, the champion 3 (2 won, 3 lost, 0 tied); p = 0.812 is above alpha = 0.05"
    )
    assert digest(NEXT / "agent") == digest(ROUND / "agent") != digest(STATE / "agent")
    assert digest(NEXT / "reward") == digest(STATE / "reward") != digest(ROUND / "reward")


def test_its_params_are_all_that_it_reads() -> None:
    Plan(1, [Proposal("click-ok", 10_000, temperature=2.0)], 0.85).write()
    _evaluate(_episodes(9, 1, 10), _judgements(2, 3), balance=1)
    used = params(evaluate={"looks": 1}, explore={"balance": 1})
    with only_declared_params("decide"):
        decide.run(used)


def test_each_is_judged_on_its_own() -> None:
    decision = _evaluate(_episodes(2, 2, 10), _judgements(8, 0))
    assert (decision["agent"]["promoted"], decision["reward"]["promoted"]) == (False, True)
    assert digest(NEXT / "agent") == digest(STATE / "agent")
    assert digest(NEXT / "reward") == digest(ROUND / "reward")


def test_a_frozen_reward_model_stays_as_it_is() -> None:
    assert digest(ROUND / "reward") != digest(STATE / "reward")
    train_reward(params(train_reward={"frozen": True}))
    assert digest(ROUND / "reward") == digest(STATE / "reward")
    assert _evaluate(_episodes(0, 0, 4), [_judgement(0.6, 0.6)] * 9)["reward"]["promoted"] is False


@pytest.mark.parametrize(("wins", "promoted"), [(4, False), (5, True)])
def test_the_edge_of_the_test(wins: int, promoted: bool) -> None:
    # 1/16 is above 0.05 and 1/32 is not.
    assert decide.decide(_episodes(wins, 0, 5), [], 0.05, 1, QUIET)["agent"]["promoted"] is promoted


def test_a_very_small_p_is_not_said_to_be_none() -> None:
    """Of 20 wins of 20: 2 ** -20."""
    reason = decide.decide(_episodes(20, 0, 0), [], 0.05, 1, QUIET)["agent"]["reason"]
    assert reason.endswith("p = 9.54e-07 is at most alpha = 0.05")


def test_the_agents_test_goes_on_until_it_is_settled() -> None:
    """Of alpha = 0.05 the first of two looks may use 0.025: 5 of 5 wins (1/32) are not enough, 6 of 6 (1/64) are."""
    first = decide.decide(_episodes(5, 0, 5), [], 0.05, 2, QUIET)["agent"]
    assert (first["promoted"], first["look"], first["level"]) == (False, 1, 0)
    assert decide.decide(_episodes(6, 0, 5), [], 0.05, 2, QUIET)["agent"]["promoted"] is True
    both = decide.decide(_episodes(5, 0, 5) + _episodes(4, 1, 5, look=2), [], 0.05, 2, QUIET)["agent"]
    assert (both["promoted"], both["look"], both["wins"], both["losses"]) == (True, 2, 9, 1)
    assert both["level"] == 11 / 1024
    assert both["reason"].endswith("p = 0.0107 is at most 0.0107, what look 2 of 2 may use of alpha = 0.05")


def test_success_is_that_of_looks_alike_and_what_was_won_that_of_all() -> None:
    """10 of 10 wins, 7 of them in a third look, at what the agents differ in."""
    looks = [_episodes(wins, 0, 8, look) for look, wins in ((1, 2), (2, 1), (3, 7))]
    agent = decide.decide([*chain.from_iterable(looks)], [], 0.05, 3, QUIET)["agent"]
    assert (agent["challenger"]["solved"], agent["challenger"]["n"], agent["champion"]["solved"]) == (19, 19, 16)
    assert (agent["wins"], agent["losses"], agent["ties"]) == (10, 0, 24)
    found = "19 of 19 held-out goal instances solved in the first 2 looks, the champion 16; in all 3 looks 10 won, 0 l"
    assert found in agent["reason"]


def test_a_reward_model_that_says_no_to_everything_is_not_promoted() -> None:
    """Right on 20 wrong steps the champion liked, wrong on all 5 right ones: more judgements right, and worse."""
    easy = [_judgement(0.6, 0.4, label=False)] * 20 + [_judgement(0.6, 0.4, label=True)] * 5
    reward = _evaluate(_episodes(0, 0, 4), easy)["reward"]
    assert (reward["wins"], reward["losses"]) == (20, 5)
    assert reward["p_value"] <= reward["alpha"]
    assert reward["promoted"] is True  # 0.5 before and after: it does not fall
    worse = easy + [_judgement(0.4, 0.4, label=False)] * 5
    reward = _evaluate(_episodes(0, 0, 4), worse)["reward"]
    assert reward["promoted"] is False
    assert reward["reason"].endswith("the balanced accuracy of steps falls from 0.600 to 0.500")


@pytest.mark.parametrize(("lost", "promoted"), [(4, True), (5, False)])
def test_a_fall_of_the_balanced_accuracy_must_be_more_than_chance(lost: int, promoted: bool) -> None:
    """Of 100 right outcomes some are lost, of 100 wrong ones none won: 4 of 4 are chance (1/16), 5 of 5 not (1/32).

    The interval is below 0 from 4 on. By hand: mean -lost / 200, standard error the root of
    lost / 100 (1 - lost / 100) / 99, halved; 1.96 of them.
    """
    about = {"query": "outcome", "kind": "complete"}
    outcomes = [_judgement(0.6, 0.4 if n < lost else 0.6, label=True, **about) for n in range(100)]
    outcomes += [_judgement(0.4, 0.4, label=False, **about)] * 100
    reward = _evaluate(_episodes(0, 0, 4), _judgements(40, 0) + outcomes)["reward"]
    assert reward["promoted"] is promoted
    assert ("the balanced accuracy of outcomes falls" in reward["reason"]) is not promoted


def test_an_alarm_stops_a_promotion_and_the_next_round_knows_the_figure() -> None:
    """Both reward models accept one right path and 39 wrong ones: 0.975, surely above the limit of 0.75."""
    live = {"query": "outcome", "source": "live", "kind": "complete"}
    judged = [_judgement(0.9, 0.9, label=True, **live)] + [_judgement(0.6, 0.6, label=False, **live)] * 39
    decision = _evaluate(_episodes(9, 1, 10), judged + _judgements(40, 0))
    for model, judge in {"agent": "champion reward model", "reward": "challenger"}.items():
        assert decision[model]["p_value"] <= 0.05
        assert decision[model]["promoted"] is False
        assert decision[model]["reason"].endswith(f"; alarm: accepted_wrong_low of the {judge} is 0.871, above 0.75")
    monitors = read_json(ROUND / "monitors.json")
    assert [monitors[model]["accepted_wrong"] for model in ("champion", "challenger")] == [0.975, 0.975]
    assert monitors["explored"]["pass_k"] == 0.5
    assert monitors["agent"] == {"kl": 0.125}
    assert read_json(NEXT / "monitors.json") == {"accepted_wrong": [0.975]}


def test_a_reward_model_that_moves_too_far_is_not_promoted() -> None:
    reward = _evaluate(_episodes(0, 0, 4), [_judgement(0.2, 0.8)] * 9)["reward"]
    assert reward["promoted"] is False
    assert reward["reason"].endswith("; alarm: distance of the challenger is 0.600, above 0.5")


def _attacked(champion: bool, challenger: bool, step: int) -> list[Judgement]:
    """A step at which the models named are beaten: they score the wrong action 0.7 and the right one 0.7 or 0.8."""
    about = {"id": f"held-out/click-ok/7/0#{step}", "source": "attack"}
    right = _judgement(0.7 if champion else 0.8, 0.7 if challenger else 0.8, **about)
    return [right, _judgement(0.7, 0.7, label=False, **about), _judgement(0.1, 0.1, label=False, **about)]


def test_a_reward_model_that_is_fooled_more_often_is_not_promoted() -> None:
    """Newly beaten at 5 steps and at no other (1/32), of 7 in all."""
    attacks = [line for step in range(5) for line in _attacked(False, True, step)]
    attacks += [line for step in (5, 6) for line in _attacked(step == 5, step == 5, step)]
    assert _evaluate(_episodes(0, 0, 4), _judgements(8, 0), attacks[3:])["reward"]["promoted"] is True  # 4: 1/16
    reward = _evaluate(_episodes(0, 0, 4), _judgements(8, 0), attacks)["reward"]
    assert reward["promoted"] is False
    assert reward["reason"].endswith("; a wrong action beats the right one at 6 of 7 attacked steps, before at 1")


def _canaries(accepted: int) -> list[Judgement]:
    """Ten canaries, so many of which the challenger accepts newly; both accept one more."""
    about = {"query": "outcome", "source": "canary", "kind": "complete", "label": False}
    return [_judgement(0.7 if not n else 0.2, 0.5 if n <= accepted else 0.4, **about) for n in range(10)]


def test_a_reward_model_that_accepts_more_canaries_is_not_promoted() -> None:
    """Newly accepted are 5 and no fewer (1/32)."""
    assert _evaluate(_episodes(0, 0, 4), _judgements(8, 0), canaries=_canaries(4))["reward"]["promoted"] is True
    reward = _evaluate(_episodes(0, 0, 4), _judgements(8, 0), canaries=_canaries(5))["reward"]
    assert reward["promoted"] is False
    assert reward["reason"].endswith("; 6 of 10 canaries are accepted, before 1")


def test_a_reward_model_that_is_surely_worse_calibrated_is_not_promoted() -> None:
    """Live steps: as often right as before, and so sure where it is wrong that its squared error rises."""
    live = [_judgement(0.6, 0.9, source="live", label=label) for label in (True, False)] * 5
    assert surer(live) == []  # it rises by 0.15 on average, which may be chance: 1.96 standard errors are 0.196
    live += [_judgement(0.6, 0.9, source="live", label=False)] * 10
    assert surer(live) == ["the Brier score of live judgements rises from 0.310 to 0.610"]
    reward = _evaluate(_episodes(0, 0, 4), _judgements(8, 0) + live)["reward"]
    assert reward["promoted"] is False
    assert reward["reason"].endswith("the Brier score of live judgements rises from 0.310 to 0.610")


def test_a_champion_that_raises_an_alarm_after_its_promotion_is_rolled_back() -> None:
    _evaluate(_episodes(9, 1, 10), _judgements(8, 0))
    promoted = [digest(NEXT / model) for model in ("agent", "reward")]
    replaced = [digest(NEXT / "before" / model) for model in ("agent", "reward")]
    assert promoted == [digest(ROUND / model) for model in ("agent", "reward")]
    assert replaced == [digest(STATE / model) for model in ("agent", "reward")]

    (NEXT / "corpus" / "round-0001").rename(NEXT / "corpus" / "round-0000")
    shutil.rmtree(STATE)
    NEXT.rename(STATE)
    live = {"query": "outcome", "source": "live", "kind": "complete"}
    wrong = [_judgement(0.6, 0.6, label=label, **live) for label in (True, *[False] * 39)]
    decision = _evaluate(_episodes(1, 1, 10), wrong)  # what the champion reward model accepts is wrong
    assert [decision[model]["rolled_back"] for model in ("agent", "reward")] == [False, True]
    assert decision["reward"]["reason"].endswith("; the champion goes, and the one that it replaced comes back")
    assert [digest(NEXT / model) for model in ("agent", "reward")] == [promoted[0], replaced[1]]
    assert not (NEXT / "before").exists()


def test_without_an_alarm_nothing_is_rolled_back() -> None:
    (STATE / "before").mkdir()
    shutil.copytree(ROUND / "agent", STATE / "before" / "agent")
    assert _evaluate(_episodes(1, 1, 10), _judgements(1, 1))["agent"]["rolled_back"] is False
    assert digest(NEXT / "agent") == digest(STATE / "agent")


def test_nothing_to_compare_promotes_nothing() -> None:
    decision = decide.decide([], [], 0.05, 1, QUIET)
    assert decision["agent"]["promoted"] is False
    assert decision["agent"]["champion"] == {"solved": 0, "n": 0, "rate": None, "low": None, "high": None}


def test_a_score_of_a_half_accepts() -> None:
    decision = decide.decide([], [_judgement(0.5, 0.49), _judgement(0.5, 0.49, label=False)], 0.05, 1, QUIET)
    assert (decision["reward"]["wins"], decision["reward"]["losses"]) == (1, 1)


def test_the_corpus_grows_by_the_rows_of_the_round() -> None:
    _evaluate(_episodes(1, 1, 1), _judgements(1, 1))
    assert sorted(path.name for path in (NEXT / "corpus").iterdir()) == ["round-0001", "seed"]
    assert digest(NEXT / "corpus" / "seed") == digest(STATE / "corpus" / "seed")
    assert digest(NEXT / "corpus" / "round-0001") == digest(ROUND / "rows")
    assert len(list(read_trajectories(NEXT / "corpus" / "round-0001"))) == 2
    assert sorted(path.name for path in NEXT.iterdir()) == [
        *("agent", "corpus", "curriculum.json", "monitors.json", "reward")
    ]


def test_the_curriculum_moves_on() -> None:
    _evaluate(_episodes(1, 1, 1), _judgements(1, 1))
    assert read_json(NEXT / "curriculum.json") == {
        "round": 2,
        "goals": {"click-ok": {"tried": 2, "solved": 1, "sure": 1.0, "progress": 0.0}},
    }


def test_what_the_next_round_explores_with_follows_from_what_was_found() -> None:
    """At 2.5 the path was surely right, at 1.6 surely wrong; both were accepted from .1 on."""
    hot, cool = Proposal("click-ok", 10_000, temperature=2.5), Proposal("click-ok", 10_001, temperature=1.6)
    Curriculum(1, {}, Setting(2.0, 0.1)).write(STATE / "curriculum.json")
    Plan(1, [hot, cool], accept=0.1).write()
    _evaluate(_episodes(1, 1, 1), _judgements(1, 1), balance=1)
    following = Curriculum.read(NEXT / "curriculum.json")
    assert following.setting == Setting(2.5, 0.1)
    assert following.goals["click-ok"].solved == 2
    assert read_json(ROUND / "monitors.json")["next"] == {"temperature": 2.5, "accept": 0.1, "balance": 0.9 * 0.9}
    _evaluate(_episodes(1, 1, 1), _judgements(1, 1))
    assert Curriculum.read(NEXT / "curriculum.json").setting is None


def test_deciding_again_gives_the_same_bytes() -> None:
    _evaluate(_episodes(9, 1, 10), _judgements(2, 3))
    first = digest(NEXT), digest(ROUND / "decision.json")
    decide.run(params(evaluate={"looks": 1}))
    assert (digest(NEXT), digest(ROUND / "decision.json")) == first


def test_a_read_only_checkout_is_copied_writable() -> None:
    weights = STATE / "agent" / "adapter" / "weights.bin"
    weights.chmod(0o444)
    _evaluate(_episodes(0, 0, 5), [])
    copied = NEXT / "agent" / "adapter" / "weights.bin"
    assert copied.read_bytes() == weights.read_bytes()
    assert os.stat(copied).st_mode & 0o200


def test_a_corpus_that_has_the_round_already_is_refused() -> None:
    (STATE / "corpus" / "round-0001").mkdir()
    with pytest.raises(RecordError, match=r"data/state/corpus/round-0001: already there"):
        _evaluate(_episodes(1, 0, 0), [])
    assert not NEXT.exists()
    assert not (ROUND / "decision.json").exists()


def test_attempts_are_by_instance_and_unscored_ones_say_nothing() -> None:
    crashed, midway = trajectory(5, None, seed=10_003), trajectory(6, 0.1, seed=10_004)
    trajectories = [
        trajectory(0, 0.2),
        trajectory(1, 0.5),
        trajectory(2, 0.4, seed=10_001),
        trajectory(3, None, seed=10_001),
        replace(crashed, episode=replace(crashed.episode, end=End.CRASHED)),
        replace(midway, episode=replace(midway.episode, end=End.CRASHED)),
    ]
    assert decide.attempts(trajectories, Bar(0.5)) == [("click-ok", True, 1.0), ("click-ok", False, 0.0)]


def test_how_sure_the_agent_was_of_the_best_path_is_the_geometric_mean_of_its_steps_shares() -> None:
    """Of ten samples the path's first step was 4, its second 3 of 5: the root of .24."""
    better, worse = trajectory(0, 0.9), trajectory(1, 0.6)
    click, other = better.episode.steps[0].candidates[0], Candidate(Action(Kind.WAIT), 0)
    steps = [
        replace(better.episode.steps[0], candidates=(replace(other, count=rest), replace(click, count=own)))
        for own, rest in ((4, 6), (3, 2))
    ]
    rare = replace(worse.episode.steps[0], candidates=(replace(other, count=9), replace(click, count=1)))
    better = replace(better, episode=replace(better.episode, steps=tuple(steps)))
    worse = replace(worse, episode=replace(worse.episode, steps=(rare,)))
    assert decide.attempts([worse, better], Bar(0.5)) == [("click-ok", True, pytest.approx(0.24**0.5))]


def test_of_a_path_that_went_on_from_a_failed_one_the_agent_was_not_sure() -> None:
    """Each of its steps is a single sample, which looks like ten of ten."""
    continued = replace(trajectory(0, 0.9), origin=Origin.CONTINUATION, parent="p")
    assert decide.attempts([continued], Bar(0.5)) == [("click-ok", True, 0.0)]


JUDGEMENTS = [
    _judgement(0.9, 0.95),
    _judgement(0.4, 0.8),
    _judgement(0.7, 0.2, label=False),
    _judgement(0.6, 0.1, label=False, source="live", kind="type"),
    _judgement(0.3, 0.9, query="outcome", source="live", kind="complete"),
]


def test_the_summary_has_both_models_side_by_side() -> None:
    episodes = _episodes(3, 1, 4)
    episodes[0]["tier"] = 2
    summary = summarise(episodes, JUDGEMENTS, [*_attacked(True, False, 0), *_attacked(True, True, 1)], _canaries(3))
    champion, challenger = summary["agent"]["champion"], summary["agent"]["challenger"]
    assert (champion["overall"]["rate"], challenger["overall"]["rate"]) == (5 / 8, 7 / 8)
    assert (champion["tier_1"]["n"], champion["tier_2"]["solved"], challenger["tier_2"]["solved"]) == (
        7,
        0,
        1,
    )
    assert champion["overall"]["low"] == pytest.approx(0.305742, abs=1e-6)
    pairs = summary["reward"]["champion"]["step"]["pairs"]
    assert (pairs["precision"], pairs["recall"], pairs["f1"], pairs["n"]) == (1 / 2, 1 / 2, 1 / 2, 3)
    assert pairs["auc"] == 1 / 2
    better = summary["reward"]["challenger"]
    assert [summary["reward"][model]["beaten"]["rate"] for model in ("champion", "challenger")] == [1, 0.5]
    assert [summary["reward"][model]["canaries"]["rate"] for model in ("champion", "challenger")] == [0.1, 0.4]
    assert (better["step"]["pairs"]["f1"], better["step"]["pairs"]["f1_low"]) == (1, 1)
    assert better["step"]["live"]["f1"] is None
    assert summary["reward"]["champion"]["step"]["false_accepts"] == {
        "click": {"rate": 1.0, "n": 1},
        "type": {"rate": 1.0, "n": 1},
    }
    assert better["step"]["false_accepts"]["click"]["rate"] == 0
    assert better["outcome"]["false_accepts"]["complete"] == {"rate": None, "n": 0}


def test_the_plots_are_tables(tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    write_plots(folder, _episodes(3, 1, 4), JUDGEMENTS)
    assert sorted(path.name for path in folder.iterdir()) == [
        "action_kinds.csv",
        "reliability.csv",
        "success_by_goal.csv",
    ]
    tables = {path.stem: list(csv.DictReader(path.read_text().splitlines())) for path in folder.iterdir()}
    assert [(row["model"], row["solved"], row["n"]) for row in tables["success_by_goal"]] == [
        ("champion", "5", "8"),
        ("challenger", "7", "8"),
    ]
    assert sum(int(row["n"]) for row in tables["reliability"]) == 2 * len(JUDGEMENTS)
    clicks = next(row for row in tables["action_kinds"] if (row["kind"], row["model"]) == ("click", "champion"))
    assert (clicks["n"], clicks["false_accepts"]) == ("3", "1.0")


def test_plots_of_nothing_are_empty_tables(tmp_path: Path) -> None:
    write_plots(tmp_path / "plots", [], [])
    assert [path.read_text().strip() for path in (tmp_path / "plots").iterdir()] == ["", "", ""]
