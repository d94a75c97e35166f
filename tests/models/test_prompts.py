"""The order of a prompt: what the steps of a trajectory share stands first."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from tiny import contexts, journey

from environments.types import Action, Element, Kind, Observation, Step
from models.inference import TorchEngine
from models.network import POSITIVE, Network
from models.prompts import Context, context_at, left_out, message


def written(context: Context, screenshots: int) -> tuple[str, list[bytes]]:
    ((said,), images) = message(context, screenshots)
    return "".join(part.get("text", "<image>") for part in said["content"]), images


@pytest.mark.parametrize(
    ("screenshots", "expected"),
    [
        (0, [0, 1, 2, 3, 4, 5]),
        (1, [0, 0, 1, 2, 3, 4]),
        (2, [0, 0, 0, 1, 2, 3]),
        (3, [0, 0, 0, 0, 2, 2, 4, 4, 6]),
        (5, [0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9]),
        (16, [0] * 17 + [8] * 8 + [16]),
    ],
)
def test_the_window_slides_in_blocks(screenshots: int, expected: list[int]) -> None:
    assert [left_out(past, screenshots) for past in range(len(expected))] == expected


def test_no_more_are_shown_than_asked_for() -> None:
    assert all(0 <= past - left_out(past, most) <= most for most in range(17) for past in range(50))


def test_a_prompt_in_words() -> None:
    context = journey(3)[2]
    (first, one), (second, two) = context.history
    assert written(context, 5) == (
        f"Goal: Go on\n<image>Did: {one}\n<image>Did: {two}\n<image>Elements:\n"
        'button "b0" 20,5\nbutton "b1" 20,17\nbutton "b2" 20,29\n',
        [first, second, context.observation.screenshot],
    )
    assert written(context, 1)[0].startswith(f"Goal: Go on\nEarlier: {one}\n<image>Did: {two}\n<image>Elements:\n")
    assert written(context, 0)[0].startswith(f"Goal: Go on\nEarlier: {one}; {two}\n<image>Elements:\n")


@pytest.mark.parametrize("screenshots", [1, 2, 3, 5])
def test_a_step_begins_with_the_one_before_up_to_its_screenshot(screenshots: int) -> None:
    steps = [written(context, screenshots) for context in journey(13)]
    for past, ((before, seen), (after, shown)) in enumerate(pairwise(steps)):
        if left_out(past, screenshots) == left_out(past + 1, screenshots):
            assert after.startswith(before[: before.rindex("<image>") + len("<image>")] + "Did: ")
            assert shown[: len(seen)] == seen


def test_several_fields_have_numbers_and_a_single_one_has_none() -> None:
    def line(*kinds: str) -> list[str]:
        elements = tuple(Element(kind, "", (0, 0, 10, 10), ("focus",) * (kind == "password")) for kind in kinds)
        return written(Context("Go on", (), Observation(b"", elements)), 0)[0].split("Elements:\n")[1].splitlines()

    assert line("text", "textbox", "button") == ['text "" 5,5', 'empty textbox "" 5,5', 'button "" 5,5']
    assert line("textbox", "checkbox", "password", "textarea") == [
        '1st empty textbox "" 5,5', 'off checkbox "" 5,5', '2nd empty focus password "" 5,5',
        '3rd empty textarea "" 5,5',
    ]  # fmt: skip
    numbers = [one.split()[0] for one in line(*["textbox"] * 113)]
    assert [numbers[place - 1] for place in (4, 11, 12, 13, 21, 22, 23, 101, 111, 113)] == [
        "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "101st", "111th", "113th",
    ]  # fmt: skip


def test_what_is_empty_or_off_is_said() -> None:
    elements = (
        Element("textbox", "a", (0, 0, 10, 10)),
        Element("textbox", "", (0, 0, 10, 10)),
        Element("checkbox", "b", (0, 0, 10, 10), ("on",)),
        Element("radio", "c", (0, 0, 10, 10)),
        Element("switch", "d", (0, 0, 10, 10), ("focus",)),
        Element("option", "", (0, 0, 10, 10)),
    )
    lines = written(Context("Go on", (), Observation(b"", elements)), 0)[0].split("Elements:\n")[1].splitlines()
    assert lines == [
        '1st textbox "a" 5,5', '2nd empty textbox "" 5,5', 'on checkbox "b" 5,5', 'off radio "c" 5,5',
        'off focus switch "d" 5,5', 'option "" 5,5',
    ]  # fmt: skip


@pytest.mark.parametrize("token", ["<image>", "<|image_pad|>", "<|im_end|>", "<|im_start|>", POSITIVE])
def test_a_page_that_spells_a_token_of_the_chat_stays_text(network: Network, token: str) -> None:
    """In an element, in the goal, in what was typed and in an answer: the prompt has the tokens it would have."""
    ids = network.processor.tokenizer.added_tokens_encoder

    def reserved(text: str) -> list[int]:
        screen = replace(contexts()[0].observation, elements=(Element("button", text, (1, 1, 20, 20)),))
        context = context_at(f"Press {text}", [Step(screen, Action(Kind.TYPE, text=text))], screen)
        (scores,) = TorchEngine(network).score([context], [[f'type "{text}"', "wait"]])
        assert all(0 < score < 1 for score in scores)
        prompt = network.text_tokens(network.prompt(context)[0])
        return [token for token in [*prompt, *network.answer_tokens(f'type "{text}"')] if token in ids.values()]

    assert reserved(f"a {token} b") == reserved("a plain b")
