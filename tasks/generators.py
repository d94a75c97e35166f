"""What makes reward rows, by name: :mod:`tasks.reward_data` has the makers, ``filter.without`` switches them off."""

from enum import StrEnum


class Generator(StrEnum):
    """What makes a reward row; ``RewardRow.generator`` is one of these."""

    EXECUTED = "executed"  # + the action of a solved path
    RULE_POSITIVE = "rule_positive"  # + a candidate equal to it by rule
    RULE = "rule"  # - a candidate that differs by rule
    HARD_NEGATIVE = "hard_negative"  # - such a candidate that the reward model liked
    WRONG_TEXT = "wrong_text"  # - typing another part of the instruction, scrolling or swiping the other way
    TOO_SOON = "too_soon"  # - the last action of a demonstration before its time
    REPEAT = "repeat"  # - the action before, once more
    SIBLING = "sibling"  # - a click, long press or swipe on another element
    SWAPPED_KIND = "swapped_kind"  # - typing where a click is due, a click where a long press or swipe is
    OUTCOME = "outcome"  # + `complete` on the last screen of a solved path
    EARLY = "early"  # - `complete` before that
    CROSS_GOAL = "cross_goal"  # - `complete` there, for another instruction
    EDITED = "edited"  # +/- an action, or `complete`, for an instruction with another name in it
    SPOILED = "spoiled"  # - `complete`, and the action before it, where a demonstration was played so that it failed
    EQUIVALENT = "equivalent"  # + the actions of a demonstration with two of its moves exchanged, and its end
    RECOVERED = "recovered"  # + those of a demonstration after a harmless slip, and its end
    PAST_END = "past_end"  # - any further action there
    UNQUOTED = (
        "unquoted"  # - the end of a path without what its instruction quotes, and the action that closed its world
    )
    CONTINUATION = "continuation"  # +/- an action of a failed path, by what became of its continuations
    ATTACK = "attack"  # +/- a step of a demonstration at which the reward model liked a wrong action (tasks/attack.py)
