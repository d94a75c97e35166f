"""Goals in apps: what a file says, what the seed chooses, and the one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
import yaml

from environments.android.adb import Phone
from environments.android.goals import read_job
from environments.registry import load_goals
from environments.types import Goal, GoalError, Observation, WorldError

GOOD = """
    id: send
    tier: 2
    max_steps: 8
    instruction: Tell {who} {{now}} that "{what}".
    values:
      who: [Ann, Ben, Cem]
      what: ["it's late", 'a "quote"']
    setup:
      - shell am broadcast -a add --es name {who} --es text {what} | awk '{{print $1}}'
      - push notes.db /sdcard/{who}.db
    success: {shell: sent_to, prints: "{who}"}
"""


def _file(folder: Path, goal: str = GOOD, app: str = "org.example.chat/.Main") -> Path:
    path = folder / "chat.yaml"
    reset = "  reset:\n    - emu avd snapshot load clean\n    - shell echo '{}'\n"
    head = f"android:\n  app: {app}\n{reset}  goals:\n"
    entry = indent(dedent(goal).strip(), "      ").strip()
    path.write_text(f"{head}    - {entry}\n", encoding="utf-8")
    return path


def test_a_file_gives_goals(tmp_path: Path) -> None:
    file = _file(tmp_path)
    assert load_goals(file) == {"send": Goal("send", "environments.android:Android", f"{file}#send", 2, 8)}


def test_the_seed_chooses_the_values_and_commands_get_them_quoted(tmp_path: Path) -> None:
    page = f"{_file(tmp_path)}#send"
    jobs = [read_job(page, seed) for seed in range(40)]
    assert {(job.app, job.before[0], job.before[1]) for job in jobs} == {
        ("org.example.chat/.Main", "emu avd snapshot load clean", "shell echo '{}'")
    }
    assert {(job.instruction, job.before[2:]) for job in jobs} == {
        (
            f'Tell {who} {{now}} that "{what}".',
            (
                f"shell am broadcast -a add --es name {who} --es text {quoted} | awk '{{print $1}}'",
                f"push notes.db /sdcard/{who}.db",
            ),
        )
        for who in ("Ann", "Ben", "Cem")
        for what, quoted in (("it's late", "'it'\"'\"'s late'"), ('a "quote"', "'a \"quote\"'"))
    }
    assert [read_job(page, seed).instruction for seed in range(40)] == [job.instruction for job in jobs]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tier: 2", "tier: 5", "goal send: tier=5: .*less than or equal to 4"),
        ("tier: 2", "teir: 2", "goal send: (tier=.*: Field required|teir=2: Extra inputs)"),
        ("id: send", "id: Send It", "goal Send It: id='Send It': "),
        ("who: [Ann, Ben, Cem]", "who: []", r"goal send: values\.who=\[\]: "),
        ("who: [Ann, Ben, Cem]", "who: [1.5]", r"goal send: values\.who\.0\.str=1\.5: .*valid string"),
        ("Tell {who}", "Tell {whom}", r"goal send: instruction: \{whom\} is not known; there is what, who; "),
        ("--es name {who}", "--es name {name}", r"goal send: setup or success: \{name\} is not known"),
        ("Tell {who}", "Tell {who!r}", r"instruction: \{who!r\} is not known"),
        ("Tell {who}", "Tell {who.x}", r"instruction: \{who\.x\} is not known"),
        ("Tell {who}", "Tell {who", "goal send: .*'}'|goal send: "),
        ("push notes.db", "push 'notes.db", r"goal send: setup: \"push 'notes.db .*\": No closing quotation"),
        ('prints: "{who}"', 'equals: "{who}"', r"goal send: success\.equals='{who}': Extra inputs"),
        (', prints: "{who}"', "", "goal send: give shell and prints, or sql, database and prints, or screen"),
        ('prints: "{who}"', 'prints: "1", screen: Sent', "give shell and prints, or sql"),
    ],
)
def test_a_wrong_entry_is_named_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(GoalError, match=message) as caught:
        load_goals(_file(tmp_path, GOOD.replace(old, new)))
    assert "\n" not in str(caught.value)


class _Says(Phone):
    """A phone of which only the shell's answer is known."""

    def __init__(self, said: str) -> None:
        self.said = said

    def shell(self, line: str) -> str:
        return self.said


@pytest.mark.parametrize(
    "prints", ['{shell: sent_to, prints: " {who} "}', "\n      shell: sent_to\n      prints: |\n        {who}"]
)
def test_blanks_around_what_is_to_be_printed_do_not_count(tmp_path: Path, prints: str) -> None:
    """A block of YAML ends with a line's end."""
    given = '{shell: sent_to, prints: "{who}"}'
    assert given in GOOD
    job = read_job(f"{_file(tmp_path, GOOD.replace(given, prints))}#send", 0)
    (who,) = (name for name in ("Ann", "Ben", "Cem") if name in job.instruction)
    assert job.reached(_Says(f"{who}\n"), Observation(b"", ()))
    assert not job.reached(_Says("nobody\n"), Observation(b"", ()))


def test_a_value_that_breaks_a_line_for_adb_is_named(tmp_path: Path) -> None:
    """In quotes of the line's own, those that come with a value do not end."""
    phone = _Says("")
    phone.serial = "one"
    goal = GOOD.replace("push notes.db", "push '{what}'").replace(""", 'a "quote"'""", "")
    line = read_job(f"{_file(tmp_path, goal)}#send", 0).before[-1]
    with pytest.raises(WorldError, match=r"one: `adb push .*`: No closing quotation; mend the line in the goal file"):
        phone.command(line)


def test_a_wrong_app_is_named(tmp_path: Path) -> None:
    with pytest.raises(GoalError, match=r"chat\.yaml: android\.app='org.example.chat': "):
        load_goals(_file(tmp_path, app="org.example.chat"))
    file = tmp_path / "empty.yaml"
    file.write_text(yaml.safe_dump({"android": None}))
    with pytest.raises(GoalError, match="android=None: "):
        load_goals(file)


def test_a_page_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = _file(tmp_path)
    with pytest.raises(GoalError, match=r"'sned' is not one of send"):
        read_job(f"{file}#sned", 0)
    with pytest.raises(GoalError, match=r"nowhere\.yaml: the goal file cannot be read: No such file"):
        read_job("nowhere.yaml#send", 0)
