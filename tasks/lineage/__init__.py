"""The join of git, DVC, Prefect and MLflow as MLflow shows it: a run a round, in it a run a stage; models.

Importing this takes seconds (mlflow), so callers import it where they use it. Run ids are always explicit:
MLflow's current run belongs to a thread, and a flow has many.

Tags that :func:`begin_round` is given, as far as they are known: ``git.commit`` (of the code), ``host`` and
``prefect.flow_run_id``. Stage runs carry them too, and model versions the ids.
"""

from tasks.lineage.models import resolve
from tasks.lineage.runs import begin_round, end_round, fail_round, log_audit, log_page, log_stage, round_of, run_of
from tasks.lineage.source import DvcSource

__all__ = [
    "DvcSource",
    "begin_round",
    "end_round",
    "fail_round",
    "log_audit",
    "log_page",
    "log_stage",
    "resolve",
    "round_of",
    "run_of",
]
