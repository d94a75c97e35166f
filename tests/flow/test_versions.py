"""What a round commits, and what it leaves alone."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from threading import Timer

import pytest
from workspace import Workspace

from flows import report
from flows.journal import Journal
from tasks import versions
from tasks.errors import BusyError, Edited, Interruption, StageError, WorkspaceError

pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")  # of DVC's own making


def test_stages_come_in_order_with_what_git_keeps(inside: Workspace) -> None:
    stages = versions.stages()
    assert [stage.name for stage in stages] == ["base", "found", "explore", "train", "decide"]
    assert [stage.name for stage in stages if stage.seed] == ["base", "found"]
    assert stages[-1].git_outs == ("data/round/decision.json", "data/round/metrics.json", "data/round/plots")
    assert stages[2].deps[:2] == ("data/goals", "data/seed/base")


def test_a_stage_record_is_what_the_lock_file_says(inside: Workspace) -> None:
    record = versions.stage_record("explore")
    assert record.deps[0].path == "data/goals"
    assert record.params == {"seed": 0, "explore": {"paths": 2}}
    lock = inside.text("dvc.lock")
    assert all(artifact.md5 in lock and artifact.size > 0 for artifact in record.deps + record.outs)


def test_the_promoted_state_is_the_one_decided(inside: Workspace) -> None:
    decided = next(out for out in versions.stage_record("decide").outs if out.path == "data/round/state")
    assert decided.md5 in inside.text("data/state.dvc")


def test_reproduce_says_how_long_a_stage_took(inside: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    assert versions.reproduce("base") is None
    took = versions.reproduce("base", force=True)
    assert took
    assert capfd.readouterr().out == ""


def test_a_stage_without_its_output_is_an_error(inside: Workspace) -> None:
    inside.write("dvc.yaml", inside.text("dvc.yaml").replace("python toy.py base", "echo nothing"))
    with pytest.raises(StageError, match=r"stage base: output 'data/seed/base' does not exist"):
        versions.reproduce("base", force=True)


@pytest.mark.parametrize(
    ("command", "error", "said"),
    [
        ("kill -INT $$", Interruption, "was interrupted"),
        ("kill -KILL $$", versions.StageCrash, "was killed by signal 9"),
        ("exit 137", versions.StageCrash, "was killed by signal 9"),  # as a shell tells of a command it waited for
        ("exit 3", versions.StageCrash, "ended with exit status 3"),
        ("exit 2", StageError, "ended with exit status 2"),
        ("exit 75", Edited, "ended with exit status 75"),
    ],
)
def test_how_a_stage_ended_decides_whether_to_try_again(
    inside: Workspace, command: str, error: type[StageError], said: str
) -> None:
    inside.write("dvc.yaml", inside.text("dvc.yaml").replace("python toy.py base", f"sh -c '{command}'"))
    with pytest.raises(StageError, match=f"^stage base {said}") as caught:
        versions.reproduce("base", force=True)
    assert type(caught.value) is error


@pytest.mark.parametrize("file", ["dvc.lock", "data/state.dvc", "data/round/metrics.json", "data/new.dvc"])
def test_dirty_files_of_ours_stop_a_round_and_nothing_is_lost(used: Workspace, file: str) -> None:
    text = (used.text(file) if (used.root / file).exists() else "") + "\n# mine\n"
    used.write(file, text)
    refused = used.ratchet("round")
    assert refused.returncode == 2
    assert refused.stderr == (
        f"ratchet: {file}: changed since the last commit, and a round commits them as its own; keep the change with "
        f"`git add {file} && git commit`, or drop it with `git stash push -u -- {file}`\n"
    )
    assert used.text(file) == text
    assert not (used.root / ".ratchet/round.json").exists()


def test_edited_params_are_no_dirt(inside: Workspace) -> None:
    inside.write("params.yaml", inside.text("params.yaml") + "# mine\n")
    assert versions.dirty_owned() == []
    assert versions.others_dirty() == []


def test_params_of_the_seed_that_changed_are_noticed(inside: Workspace) -> None:
    assert versions.stale(seed=True) == {}
    inside.write("params.yaml", inside.text("params.yaml").replace("bases/tiny", "bases/large"))
    assert versions.stale(seed=True) == {"base": ["params.yaml"]}


def test_a_merge_under_way_stops_a_round(inside: Workspace) -> None:
    inside.git("switch", "--quiet", "--create", "other")
    inside.write("notes.txt", "theirs")
    inside.git(*ME, "commit", "--quiet", "-am", "theirs")
    inside.git("switch", "--quiet", "main")
    inside.write("notes.txt", "ours")
    inside.git(*ME, "commit", "--quiet", "-am", "ours")
    assert inside.run("git", *ME, "merge", "other").returncode == 1
    with pytest.raises(WorkspaceError, match=r"git has unfinished work \(MERGE_HEAD\)"):
        versions.check_clean()


def test_a_round_made_already_is_refused(inside: Workspace) -> None:
    inside.git("checkout", "--quiet", "round-0002")
    inside.dvc("checkout")
    assert versions.round_number() == 2
    with pytest.raises(WorkspaceError, match=r"round-0002: already made \(commit [0-9a-f]{8}\)"):
        versions.check_untagged(2)


def test_a_state_that_git_does_not_name_is_refused(inside: Workspace) -> None:
    """`git switch` to an older line without `dvc checkout`; the same while a round is stopped."""
    stopped = Journal.open()
    inside.git("checkout", "--quiet", "round-0002~1")
    named = (
        r"^data/state: not what data/state\.dvc says \(md5 \w+\.dir\).* with `dvc checkout data/state\.dvc`, or with"
    )
    with pytest.raises(WorkspaceError, match=named):
        Journal.open()
    assert report.status()[0].startswith("no round can start: data/state: not what data/state.dvc says")
    stopped.save()
    with pytest.raises(WorkspaceError, match=named):
        Journal.open()
    inside.git("checkout", "--quiet", "main")
    assert Journal.open() == stopped


def test_a_tag_of_another_line_of_rounds_is_only_to_be_deleted(inside: Workspace) -> None:
    """Round 1 was undone and made anew with another outcome; the tag of the old round 2 is still there."""
    inside.write("data/state/curriculum.json", json.dumps({"round": 2, "anew": True}))
    inside.dvc("add", "--quiet", "data/state")
    inside.git(*ME, "commit", "--quiet", "-am", "As round 1 made anew leaves it")
    with pytest.raises(
        WorkspaceError, match=r"^round-0002: there already .*; make it anew after `git tag -d round-0002`"
    ):
        Journal.open()
    inside.git("tag", "--delete", "round-0002")
    assert Journal.open().round == 2


def test_a_round_and_those_after_it_are_undone_as_documented(inside: Workspace) -> None:
    inside.git("config", "user.name", "A")
    inside.git("config", "user.email", "a@b")
    inside.recipe("To undo a round", ("round-0004", "round-0001"), ("round-0005", "round-0002"))
    assert inside.git("tag") == ""
    assert Journal.open().round == 1
    assert inside.git("status", "--porcelain") == ""


def test_what_a_tag_will_lack_is_listed(inside: Workspace) -> None:
    for path in ("data/goals/mine.yaml", "worlds/mine.py", "worlds/notes.txt"):
        inside.write(path, "mine")
    inside.write("notes.txt", "mine")
    assert versions.others_dirty() == ["notes.txt", "data/goals/mine.yaml", "worlds/mine.py"]


def test_a_commit_takes_ours_and_leaves_theirs(inside: Workspace) -> None:
    inside.write("notes.txt", "staged")
    inside.write("new.txt", "staged")
    inside.git("add", "notes.txt", "new.txt")
    inside.git("rm", "--quiet", "--cached", "toy.py")
    inside.write("notes.txt", "not staged")
    inside.write("params.yaml", "seed: 1\n")
    inside.git("add", "params.yaml")
    inside.write("params.yaml", "seed: 2\n")
    inside.write("data/round/plots/more.csv", "new\n")
    (inside.root / "data/round/plots/success.csv").unlink()
    since = versions.head()

    commit = versions.commit_round(3, "Round 3", since)

    assert inside.git("show", "--name-status", "--format=%an", "--no-renames", commit).splitlines() == [
        "Ratchet",
        "",
        "A\tdata/round/plots/more.csv",
        "D\tdata/round/plots/success.csv",
        "M\tparams.yaml",
    ]
    assert inside.git("show", f"{commit}:params.yaml") == "seed: 2"
    assert inside.git("status", "--porcelain").splitlines() == [
        "A  new.txt",
        "MM notes.txt",
        "D  toy.py",
        "?? toy.py",
    ]
    assert inside.git("show", ":notes.txt") == "staged"
    assert versions.commit_of("round-0003") == commit
    assert versions.commit_round(3, "Round 3", since) == commit
    assert versions.head() == commit


def test_a_commit_that_a_hook_refuses_changes_nothing(inside: Workspace) -> None:
    inside.write(".git/hooks/pre-commit", "#!/bin/sh\necho no commits on Fridays >&2\nexit 1\n")
    (inside.root / ".git/hooks/pre-commit").chmod(0o755)
    inside.write("data/round/plots/more.csv", "new\n")
    before = inside.git("status", "--porcelain", "--untracked-files=all")
    with pytest.raises(WorkspaceError, match=r"git commit failed: no commits on Fridays; mend it"):
        versions.commit_round(3, "Round 3", versions.head())
    assert inside.git("status", "--porcelain", "--untracked-files=all") == before
    assert "round-0003" not in versions.round_tags()


def test_what_a_kill_cut_short_is_mended(inside: Workspace) -> None:
    lock, pointer = inside.text("dvc.lock"), inside.text("data/state.dvc")
    inside.write(".ratchet/dvc.lock", lock)
    inside.write("dvc.lock", lock[: len(lock) // 2])
    inside.write("data/state.dvc", "")
    inside.write(".git/index.lock", "")
    inside.write(".git/refs/tags/round-0003.lock", "")
    held = {"pid": os.getpid(), "cmd": "a process that took the number of a dead one"}
    inside.write(".dvc/tmp/rwlock", json.dumps({"read": {"/a": [held]}, "write": {"/b": held}}))
    os.utime(inside.root / ".dvc/tmp/rwlock", (1, 1))

    versions.mend()

    assert (inside.text("dvc.lock"), inside.text("data/state.dvc")) == (lock, pointer)
    assert inside.git("status", "--porcelain") == ""
    assert not (inside.root / ".git/refs/tags/round-0003.lock").exists()
    assert json.loads(inside.text(".dvc/tmp/rwlock")) == {"read": {}, "write": {}}

    inside.write(".dvc/tmp/rwlock", '{"read": {')
    versions.mend()
    assert inside.dvc("status") == "Data and pipelines are up to date." or "data/state" in inside.dvc("status")


def test_a_linked_worktree_is_mended_unless_a_git_works_in_a_sibling(inside: Workspace, tmp_path: Path) -> None:
    """They share their refs, and each has a git directory of its own."""
    linked = tmp_path / "linked"
    inside.git("worktree", "add", "--quiet", "-b", "side", str(linked))
    lock = inside.root / ".git/refs/heads/side.lock"
    lock.write_text("")
    git = ["git", "hash-object", "--stdin"]
    with chdir(linked):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(git, cwd=inside.root, **pipes) as running:
            versions.mend()
            assert lock.exists()
            running.communicate(b"")
        versions.mend()
    assert not lock.exists()


def test_mending_leaves_a_running_git_alone(inside: Workspace) -> None:
    with subprocess.Popen(["git", "hash-object", "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        inside.write(".git/index.lock", "")
        versions.mend()
        assert (inside.root / ".git/index.lock").exists()
        running.communicate(b"")


def test_a_stage_that_is_about_to_end_is_waited_for(inside: Workspace) -> None:
    """As after kill -9 of a round: its stage may hold the lock a moment longer."""
    inside.write(".ratchet/stage.lock", "")
    holder = "import fcntl; f = open('.ratchet/stage.lock'); fcntl.flock(f, 2); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", holder], cwd=inside.root, **pipes) as stage:
        assert stage.stdout.readline() == b"\n"
        Timer(0.3, stage.kill).start()
        versions.refuse_if_busy()


def test_who_only_looks_whether_a_workspace_is_busy_keeps_nobody_out(
    inside: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.write(".ratchet/stage.lock", "")
    with (inside.root / ".ratchet/stage.lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        monkeypatch.setattr("tasks.versions.locks.time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        with versions.stage_lock("explore"), pytest.raises(BusyError), versions.stage_lock("score"):
            pytest.fail("two at a time")


def test_a_stage_that_outlived_its_round_keeps_the_next_one_out(inside: Workspace) -> None:
    with versions.stage_lock("explore"):
        with pytest.raises(BusyError, match=r"stage explore \(process \d+ on .+, since .+\) is at work here"):
            versions.refuse_if_busy()
        with pytest.raises(BusyError, match="stage explore"), versions.round_lock("round-0003"):
            pytest.fail("two at a time")
    with versions.round_lock("round-0003"), pytest.raises(BusyError, match="round-0003"):
        versions.refuse_if_busy()
    versions.refuse_if_busy()


@pytest.mark.parametrize("verb", ["push", "pull", "round"])
def test_no_default_remote(used: Workspace, verb: str) -> None:
    used.dvc("remote", "default", "--unset")
    refused = used.ratchet(verb)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"ratchet: no default remote: set one with `dvc remote add -d NAME URL` "
        f"(a directory, or s3://bucket/path), then run `ratchet {verb}`\n"
    )


def test_a_clone_has_a_round_up_to_date(used: Workspace, tmp_path: Path) -> None:
    clone = Workspace(tmp_path / "clone", used.env)
    used.git("clone", "--quiet", str(used.root), str(clone.root))
    clone.dvc("remote", "modify", "--local", "local", "url", str(used.root / ".ratchet/remote"))
    clone.git("checkout", "--quiet", "round-0001")
    assert clone.ratchet("pull").returncode == 0
    assert clone.dvc("status") == "Data and pipelines are up to date."
    assert "Data and pipelines are up to date." in clone.dvc("repro")
    assert clone.git("status", "--porcelain") == ""
    clone.git("checkout", "--quiet", "main")
    (refused, *_) = clone.ratchet("status").stdout.splitlines()
    assert refused.startswith("no round can start: data/state: not what data/state.dvc says")
    assert refused.endswith("or with `ratchet pull` where its data is not here")


def test_a_round_is_made_again(used: Workspace) -> None:
    """What was downloaded or installed for it is there too."""
    used.write(".ratchet/vllm/bin/python", "a server's")
    same = used.ratchet("reproduce", "round-0001", TOY_OFFLINE="1", TOY_NEEDS=".ratchet/vllm/bin/python")
    assert used.text(".ratchet/vllm/bin/python") == "a server's"
    assert (same.returncode, same.stdout) == (0, "round-0001: every output is the same\n"), same.stderr
    assert used.git("worktree", "list").count("\n") == 0
    assert used.git("status", "--porcelain") == ""


def test_by_how_much_a_round_made_again_differs_is_said(inside: Workspace) -> None:
    (agent, _) = versions.stage_record("train").outs
    other = inside.ratchet("reproduce", "round-0002", TOY_NOISE="1")
    assert other.returncode == 1, other.stderr
    lines = other.stdout.splitlines()
    assert [line.split(": ")[:2] for line in lines if line.startswith(("train", "decide"))] == [
        ["train", "data/round/agent"],
        ["train", "data/round/reward"],
        ["decide", "data/round/evaluation"],
        ["decide", "data/round/metrics.json"],
        ["decide", "data/round/state"],
    ]
    noisy = rf"train: data/round/agent: {agent.md5} \(128 B\) -> (?!{agent.md5})\w{{32}}\.dir \(129 B\)"
    assert re.fullmatch(noisy, lines[0])
    assert "agent.challenger.overall.solved: 2 -> 4" in lines
    assert lines[-1] == "round-0002: 5 outputs differ"


ME = ("-c", "user.name=A", "-c", "user.email=a@b")
