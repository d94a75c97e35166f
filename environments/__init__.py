"""The worlds: what an action and an observation are, the contract every world keeps, and Chromium."""
