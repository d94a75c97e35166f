"""What a stage does: one module a stage, plus lineage (MLflow) and versions (DVC and git)."""
