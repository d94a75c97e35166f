"""How the embedded base learns to see: a vision tower trained on random pages, then aligned to the language model."""
