"""What a stage does: one module a stage, beside modules and folders of what stages share (docs/architecture.md)."""
