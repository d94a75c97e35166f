"""What is kept, and under which name: the only importer of DVC and of git.

``graph`` reads the stages of ``dvc.yaml`` and runs them, ``history`` makes the commits and tags of rounds, ``locks``
keeps a workspace to one round, ``mend`` puts right what a killed process left half-done, ``remake`` makes a tagged
round again. Paths are those of the workspace, which is the current directory.
"""

from tasks.versions.graph import (
    Artifact,
    RemoteError,
    StageCrash,
    StageRecord,
    check_remote,
    checked_out,
    promote,
    pull,
    push,
    reproduce,
    stage_record,
    stages,
    stale,
)
from tasks.versions.history import (
    check_clean,
    check_state,
    check_untagged,
    commit_of,
    commit_round,
    commit_state,
    dirty_owned,
    has_state,
    head,
    others_dirty,
    round_number,
    round_tags,
    show,
    tag_of,
)
from tasks.versions.locks import AUDIT, refuse_if_busy, round_lock, stage_lock
from tasks.versions.mend import mend
from tasks.versions.remake import remake

__all__ = [
    "AUDIT",
    "Artifact",
    "RemoteError",
    "StageCrash",
    "StageRecord",
    "check_clean",
    "check_remote",
    "check_state",
    "check_untagged",
    "checked_out",
    "commit_of",
    "commit_round",
    "commit_state",
    "dirty_owned",
    "has_state",
    "head",
    "mend",
    "others_dirty",
    "promote",
    "pull",
    "push",
    "refuse_if_busy",
    "remake",
    "reproduce",
    "round_lock",
    "round_number",
    "round_tags",
    "show",
    "stage_lock",
    "stage_record",
    "stages",
    "stale",
    "tag_of",
]
