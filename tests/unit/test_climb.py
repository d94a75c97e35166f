"""The climb benchmark: its goals, and the figures it makes of what was measured."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest
import yaml
from scipy.stats import t

from benchmarks.climb import (
    ARMS,
    COMMON,
    CONTROL,
    FULL,
    GOALS,
    UNSEEN,
    Place,
    Results,
    interval,
    is_made,
    make_round,
    measure,
    measured,
    rate,
    report,
)
from environments.oracles import pages
from environments.registry import load_goals
from flows.journal import JOURNAL
from tasks.files import WORK, digest
from tasks.params import Params, load_params

ROOT = Path(__file__).parents[2]


def line(arm: str, number: int, solved: int, seed: int = 0) -> dict[str, object]:
    """Of ten instances of a goal of tier 1 so many are solved, and of tier 4 none."""
    climb = {"easy": {"tier": 1, "solved": solved, "n": 10}, "hard": {"tier": 4, "solved": 0, "n": 10}}
    others = {f"tier{n}": {"tier": n, "solved": 0, "n": 10} for n in (2, 3)}
    return {"arm": arm, "round": number, "seed": seed, "seconds": 60, "climb": climb | others, "unseen": climb}


def test_half_of_the_goals_is_of_tier_1_and_others_no_arm_sees() -> None:
    known = load_goals(ROOT / "data/goals")
    assert Counter(known[goal].tier for goal in GOALS) == {1: 10, 2: 3, 3: 5, 4: 2}
    hardest = COMMON["demonstrate"]["hardest_tier"]
    assert ARMS["no harder goals"] == {"propose": {"hardest_tier": hardest}}
    assert sum(known[goal].tier <= hardest for goal in GOALS) == len(GOALS) / 2
    assert {known[goal].page for goal in (*GOALS, *UNSEEN)} <= pages()
    assert not set(GOALS) & set(UNSEEN)


def test_every_arm_is_params_that_a_round_takes() -> None:
    written = load_params(ROOT / "params.yaml").model_dump(by_alias=True)
    for arm in ({}, *ARMS.values()):
        params = dict(written)
        for changes in (COMMON, arm):
            for name, value in changes.items():
                params[name] = params[name] | value if isinstance(value, dict) else value
        Params.model_validate(params)


def test_rates_and_intervals_by_hand() -> None:
    one, two = line(FULL, 1, 4), line(FULL, 1, 8, seed=1)
    assert rate(one, "climb") == 0.1
    assert rate(one, "climb", (1,)) == 0.4
    assert interval([one], "unseen") == pytest.approx((0.2, 0.0807, 0.4160), abs=1e-4)  # Wilson, 4 of 20
    half = t.ppf(0.975, 1) * 0.1 / 2**0.5 / 2**0.5  # rates 0.1 and 0.2: deviation 0.1 / sqrt(2), of two seeds
    assert interval([one, two], "climb") == pytest.approx((0.15, 0.15 - half, 0.15 + half))
    assert interval([two, two], "unseen") == pytest.approx((0.4, 0.2634, 0.5540), abs=1e-4)  # Wilson, 16 of 40


def test_results_outlast_the_process_and_give_the_ratios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Results(tmp_path / "results.jsonl")
    for made in (line("start", 0, 2), line(FULL, 1, 4), line(FULL, 2, 8), line(CONTROL, 2, 6)):
        results.add(made)
    assert len(Results(results.file).of(FULL)) == 2
    assert report(Results(results.file), 2) == {
        "seeds": 1,
        "success_ratio": 4.0,
        "full_minus_best_control": pytest.approx(0.05),
    }
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("  ")[0] for row in rows[1:5]] == ["start", FULL, FULL, CONTROL]
    assert rows[5:] == [f"{FULL} less start: +0.150, seeds 0", f"{FULL} less {CONTROL}: +0.050, seeds 0"]


def test_arms_are_compared_on_the_seeds_that_both_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The control of an easier seed is the best arm there is, and says nothing of seeds it was not made for."""
    results = Results(tmp_path / "results.jsonl")
    frozen = next(arm for arm in ARMS if arm != FULL)
    for seed, start, full, other in ((0, 2, 6, 4), (1, 4, 10, 4), (2, 8, 9, None)):
        results.add(line("start", 0, start, seed))
        results.add(line(FULL, 2, full, seed))
        if other is not None:
            results.add(line(frozen, 2, other, seed))
    results.add(line(frozen, 1, 10, seed=2))  # its last round is still to come
    results.add(line(CONTROL, 2, 10, seed=3))
    ratios = report(results, 2)
    assert ratios == {
        "seeds": 4,
        "success_ratio": pytest.approx(25 / 14),
        "full_minus_best_control": pytest.approx(0.1),
    }
    half = t.ppf(0.975, 1) * 0.05  # gains of .05 and .15: deviation .1 / sqrt(2), of two seeds
    told = capsys.readouterr().out
    assert f"{FULL} less {frozen}: +0.100 [{0.1 - half:+.3f}, {0.1 + half:+.3f}], seeds 0, 1\n" in told
    assert f"less {CONTROL}" not in told


def test_nothing_solved_at_the_start_has_no_ratio(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    for made in (line("start", 0, 0), line(FULL, 2, 4)):
        results.add(made)
    assert report(results, 2) == {"seeds": 1, "success_ratio": None, "full_minus_best_control": None}
    assert report(Results(tmp_path / "none.jsonl"), 2)["success_ratio"] is None


def test_a_seed_that_is_measured_needs_no_workspace(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    for made in (line("start", 0, 2), line(FULL, 1, 4), line(FULL, 2, 8), line(CONTROL, 2, 6)):
        results.add(made)
    before = results.file.read_bytes()
    measure(tmp_path / "seed-0", 0, Namespace(arms=[FULL, CONTROL], rounds=2, held_out=10), results)
    assert results.file.read_bytes() == before
    assert not (tmp_path / "seed-0").exists()


def test_an_arm_is_set_on_a_clean_tree_with_what_the_founding_made(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.git("init", "--quiet")
    (tmp_path / "params.yaml").write_text("seed: 0\npropose: {per_goal: 2, new: 0.0}\n")
    place.set({"seed": 3})
    (tmp_path / "dvc.lock").write_text("schema: '2.0'\n")
    place.set({"propose": {"per_goal": 5}})
    assert not place.git("status", "--short")
    assert place.git("show", "HEAD:dvc.lock") == "schema: '2.0'"
    assert yaml.safe_load(place.git("show", "HEAD:params.yaml")) == {"seed": 3, "propose": {"per_goal": 5, "new": 0.0}}


class Stopping(Place):
    """A workspace whose first try at a round is killed in its midst, and whose second is not."""

    def run(self, *command: str) -> str:
        assert command == ("flows.cli", "round")
        journal = self.root / JOURNAL
        if journal.exists():
            self.git("tag", "round-0001")
            journal.unlink()
            return ""
        journal.parent.mkdir()
        journal.write_text('{"spent_s": 3000.0}')
        raise SystemExit("killed")


def test_what_a_stopped_round_took_counts(tmp_path: Path) -> None:
    (tmp_path / "arm").mkdir()
    place = Stopping(tmp_path / "arm")
    place.git("init", "--quiet")
    place.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message", "begin")
    with pytest.raises(SystemExit, match="killed"):
        make_round(place, 1)
    assert not is_made(place, 1)
    took = make_round(place, 1)
    assert 3000 <= took < 3060
    assert is_made(place, 1)
    assert make_round(place, 1) == took
    (tmp_path / "arm" / WORK / "climb-1.json").unlink()
    with pytest.raises(SystemExit, match="how long round 1 took is lost"):
        make_round(place, 1)


def test_an_agent_is_measured_once_a_seed(tmp_path: Path) -> None:
    """The place has nothing to play with: what is told was known of these bytes."""
    (tmp_path / "agent").write_bytes(b"weights")
    results = Results(tmp_path / "results.jsonl")
    for seed, solved in ((0, 3), (1, 7)):
        results.add(line("start", 0, solved, seed) | {"agent": digest(tmp_path / "agent")})
    told = measured(Place(tmp_path), "agent", 1, results, 10, ["unseen"])
    assert told == {name: results.lines[1][name] for name in ("agent", "unseen")}


def test_rounds_before_the_last_tell_nothing_of_unseen_goals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "results.jsonl")
    early = {name: value for name, value in line(FULL, 1, 4).items() if name != "unseen"}
    for made in (line("start", 0, 2), early, line(FULL, 2, 8)):
        results.add(made)
    report(results, 2)
    rows = capsys.readouterr().out.splitlines()[1:4]
    assert [row.count("[") for row in rows] == [2, 1, 2]
