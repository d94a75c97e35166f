"""Random interface pages, drawn by the real browser: what a base model learns to see from."""
