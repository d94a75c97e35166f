"""What a stage does: one module a stage. What several stages use has a folder a subject (docs/architecture.md)."""
