"""The agent and the reward model: prompts, inference, training. Code only; weights live in data/."""
