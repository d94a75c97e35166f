"""A reward row in the making: what the generators yield and the balance chooses from."""

from __future__ import annotations

from dataclasses import dataclass

from environments.types import Action, Element, Observation
from tasks.generators import Generator
from tasks.records import RewardRow, Trajectory

# What a model is shown beside the action to judge: instruction, actions so far, screen. Past screenshots
# follow from these, since worlds are deterministic.
Situation = tuple[str, tuple[Action, ...], tuple[Element, ...], bytes]


@dataclass(frozen=True, slots=True)
class Draft:
    """A judgement with what decides whether it stays.

    ``ease`` ranks rows of one label: surplus is dropped from the easiest. Scored candidates lie in 0..1 by
    how right the reward model is about them; made-up negatives count up from ``MADE_UP``, the most tempting
    first.
    ``other_goal`` is the instruction shown in place of the trajectory's own, "" for none.
    """

    trajectory: Trajectory
    step: int
    action: Action
    generator: Generator
    label: bool
    ease: float
    other_goal: str = ""

    @property
    def instruction(self) -> str:
        """The instruction that the action is judged by."""
        return self.other_goal or self.trajectory.episode.instruction

    @property
    def situation(self) -> Situation:
        """What the judging model is shown beside the action: equal situations are equal prompts."""
        return situation(self.trajectory, self.step, self.instruction)

    def row(self, number: int) -> RewardRow:
        """The row, ``number`` counting those of its trajectory's step."""
        trajectory = self.trajectory
        instance = trajectory.episode.instance
        return RewardRow(
            id=f"{trajectory.id}#{self.step}.{number}",
            trajectory=trajectory.id,
            step=self.step,
            goal=instance.goal.id,
            seed=instance.seed,
            round=trajectory.round,
            instruction=self.instruction,
            action=str(self.action),
            label=self.label,
            generator=self.generator.value,
            agent=trajectory.agent,
            reward=trajectory.reward,
        )


MADE_UP = 2.0  # ease of the hardest negative that no agent proposed: above every scored candidate


def unsure(score: float | None) -> float:
    """A score for ranking: one that was not given is neither high nor low."""
    return 0.5 if score is None else score


def screen(trajectory: Trajectory, step: int) -> Observation:
    """The observation of a step; one past the last step is the screen the episode ended on."""
    episode = trajectory.episode
    return episode.steps[step].observation if step < len(episode.steps) else episode.last


def situation(trajectory: Trajectory, step: int, instruction: str) -> Situation:
    """What a model is shown at a step under an instruction."""
    observation = screen(trajectory, step)
    actions = tuple(taken.action for taken in trajectory.episode.steps[:step])
    return instruction, actions, observation.elements, observation.screenshot
