"""git: a round is a commit and a tag, made of Ratchet's own files alone."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasks.errors import WorkspaceError
from tasks.files import STATE
from tasks.versions.graph import LOCK, open_repo, stages

PARAMS = "params.yaml"
POINTER = f"{STATE}.dvc"
# What git keeps while it is in the middle of something that a commit of other files would disturb.
UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


@dataclass(frozen=True, slots=True)
class _Change:
    """A file that differs from HEAD; ``path`` is relative to the top of the git repository."""

    path: str
    untracked: bool


def has_state() -> bool:
    """Whether the first state was found: from then on ``data/state`` is tracked."""
    return Path(POINTER).exists()


def round_number() -> int:
    """The number of the round that ``data/state`` starts; 1 when there is no state yet.

    Raises:
        WorkspaceError: the state is tracked and not there, or says no number.
    """
    if not has_state():
        return 1
    curriculum = STATE / "curriculum.json"
    try:
        return int(json.loads(curriculum.read_text())["round"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            f"{curriculum}: no round number ({error!r}); fetch the state with `ratchet pull`"
        ) from error


def tag_of(number: int) -> str:
    """The tag of a round."""
    return f"round-{number:04d}"


def head() -> str:
    """The commit checked out.

    Raises:
        WorkspaceError: this is no git repository, or it has no commit yet.
    """
    return commit_of("HEAD")


def commit_of(rev: str) -> str:
    """The commit that a tag, branch or abbreviation names.

    Raises:
        WorkspaceError: there is no such revision.
    """
    found = _try_git("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}")
    if found is None:
        raise WorkspaceError(f"{rev}: names no commit here, and a round builds on one; see `git log` and `git tag`")
    return found


def round_tags() -> list[str]:
    """The tags of rounds, oldest first."""
    tags = [tag for tag in git("tag", "--list", "round-*").split() if re.fullmatch(r"round-\d{4,}", tag)]
    return sorted(tags, key=lambda tag: int(tag.removeprefix("round-")))


def show(rev: str, path: str) -> str | None:
    """The text of a file at a revision, or None when it is not there."""
    return _try_git("show", f"{rev}:./{path}")


def dirty_owned() -> list[str]:
    """Files that rounds commit and that someone changed: all but ``params.yaml``, which is the round's to take."""
    return [change.path for change in _changes(_owned()) if Path(change.path).name != PARAMS]


def others_dirty() -> list[str]:
    """Files outside Ratchet's own that the commit of a round will lack: changed, or new and code or read by a stage."""
    owned = {change.path for change in _changes(_owned())}
    used = {change.path for change in _changes(["*.py", *(dep for stage in stages() for dep in stage.deps)])}
    changes = [change for change in _changes(["."]) if not change.untracked or change.path in used]
    return [change.path for change in changes if change.path not in owned]


def check_clean() -> None:
    """Find out before a round starts whether it could be committed.

    Raises:
        WorkspaceError: git is in the middle of something, or files that the round commits are dirty.
    """
    folder = Path(git("rev-parse", "--absolute-git-dir"))
    if found := [name for name in UNFINISHED if (folder / name).exists()]:
        raise WorkspaceError(f"git has unfinished work ({found[0]}), and a round commits; finish it, see `git status`")
    if dirty := dirty_owned():
        files = " ".join(dirty)
        raise WorkspaceError(
            f"{files}: changed since the last commit, and a round commits them as its own; "
            f"keep the change with `git add {files} && git commit`, or drop it with `git stash push -u -- {files}`"
        )


def check_state() -> None:
    """Find out before a round starts whether the state here is the one that git names, which its tag will name.

    Raises:
        WorkspaceError: it is another one, or not there.
    """
    if not has_state():
        return
    with open_repo() as repo:
        (state,) = repo.stage.load_one(path=POINTER).outs
        if state.workspace_status():
            raise WorkspaceError(
                f"{STATE}: not what {POINTER} says (md5 {state.hash_info.value}), and a round starts from what git "
                f"names; make it so with `dvc checkout {POINTER}`, or with `ratchet pull` where its data is not here"
            )


def check_untagged(number: int) -> None:
    """Find out before a round starts whether there is one of that number already.

    Raises:
        WorkspaceError: the round has a tag.
    """
    tag = tag_of(number)
    commit = _try_git("rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}")
    if commit is None:
        return
    anew = f"make it anew after `git tag -d {tag}`"
    behind = _try_git("merge-base", "--is-ancestor", commit, "HEAD") is not None
    if behind and show(commit, POINTER) == show("HEAD", POINTER):
        raise WorkspaceError(
            f"{tag}: already made (commit {commit[:8]}), and {STATE} is the one it started from; go on from the "
            f"newest state with `git switch BRANCH && dvc checkout`, or {anew}"
        )
    raise WorkspaceError(
        f"{tag}: there already (commit {commit[:8]}), made from another {STATE} or on another branch; {anew} "
        f"(and `git push --delete origin {tag}` where it was pushed)"
    )


def commit_round(number: int, message: str, since: str) -> str:
    """Commit what a round made and tag it. Returns the commit; made already after ``since``, it is that one.

    Whatever else is staged or changed stays as it is.

    Raises:
        WorkspaceError: git refuses, or the tag is taken.
    """
    commit = _commit(message, f"Ratchet-Round: {number}", since)
    if commit_of_tag := _try_git("rev-parse", "--verify", "--quiet", f"{tag_of(number)}^{{commit}}"):
        if commit_of_tag != commit:
            check_untagged(number)
    else:
        git(*_identity(), "tag", "--annotate", f"--message={message}", tag_of(number), commit)
    return commit


def commit_state(number: int, message: str, since: str) -> str:
    """Commit the state that a round starts from. Returns the commit; made already after ``since``, it is that one."""
    return _commit(message, f"Ratchet-State: {number}", since)


def restore(path: str) -> None:
    """Bring back the committed version of a file; one that was never committed is deleted."""
    if _try_git("checkout", "HEAD", "--", path) is None:
        Path(path).unlink(missing_ok=True)


def git(*arguments: str) -> str:
    """Run git in the workspace and return what it says.

    Raises:
        WorkspaceError: git ends with an error.
    """
    done = _run(*arguments)
    if done.returncode:
        verb = next(word for word in arguments if re.fullmatch("[a-z-]+", word) and not word.startswith("-"))
        said = " ".join((done.stderr or done.stdout).split())
        raise WorkspaceError(f"git {verb} failed: {said}; mend it, then run the command again")
    return done.stdout.strip("\n")


def _try_git(*arguments: str) -> str | None:
    done = _run(*arguments)
    return None if done.returncode else done.stdout.strip("\n")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "--no-pager", "--no-optional-locks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def _owned() -> list[str]:
    kept = [path for stage in stages() for path in stage.git_outs]
    return [str(LOCK), PARAMS, ":(glob)data/**/*.dvc", ":(glob)data/**/.gitignore", *kept]


def _changes(pathspecs: Iterable[str]) -> list[_Change]:
    options = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    entries = git("status", *options, "--", *pathspecs).split("\0")
    return [_Change(entry[3:], entry.startswith("??")) for entry in entries if entry]


def _commit(message: str, trailer: str, since: str) -> str:
    made = git("log", "--format=%H", "--max-count=1", f"--grep=^{trailer}$", f"{since}..HEAD")
    if made:
        return made
    changes = _changes(_owned())
    paths, new = (
        [f":(top,literal){change.path}" for change in some]
        for some in (changes, [change for change in changes if change.untracked])
    )
    if not paths:
        return head()
    try:
        if new:
            git("add", "--", *new)
        git(*_identity(), "commit", "--quiet", "--only", f"--message={message}\n\n{trailer}", "--", *paths)
    except WorkspaceError:
        if new:
            git("reset", "--quiet", "--", *new)
        raise
    return head()


def _identity() -> list[str]:
    """Someone to commit as where git knows nobody."""
    unknown = {"user.name": "Ratchet", "user.email": "ratchet@localhost"}
    return [
        word
        for key, value in unknown.items()
        if _try_git("config", "--get", key) is None
        for word in ("-c", f"{key}={value}")
    ]
