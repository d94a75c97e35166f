"""The errors people see, by boundary. The command line prints one in a line and exits with its status.

RatchetError
 +-- ParamsError      params.yaml or a goal file breaks a rule
 +-- RecordError      a shard, row or checkpoint cannot be read
 +-- GateError        a data gate failed
 +-- WorkspaceError   git, DVC or the remote is not as a round needs it
 +-- BusyError        another round, or a stage, holds the workspace
 +-- StageError       a stage ended with an error
 |    +-- Interruption  by ctrl-C
 |    +-- Edited        what it read was edited while it ran
 +-- ChatError        a model on another server does not answer or refuses
"""

from __future__ import annotations

import re


class RatchetError(Exception):
    """Base of every error with a message for a person: the thing, the value, the rule, the next command."""

    status = 2  # that the command line exits with


class ParamsError(RatchetError, ValueError):
    """``params.yaml`` or a goal file breaks a rule."""


class RecordError(RatchetError, ValueError):
    """A shard, a row or a checkpoint cannot be read."""


class GateError(RatchetError):
    """A data gate failed; the message names the rows."""


class WorkspaceError(RatchetError):
    """git, DVC or the remote is not as a round needs it."""


class BusyError(RatchetError):
    """Another round, or a stage that is still running, holds the workspace."""


class StageError(RatchetError):
    """A stage ended with an error; its log says more."""


class Interruption(StageError):
    """A stage was ended by ctrl-C."""

    status = 130


class Edited(StageError):
    """What a stage read was edited while it ran: its outputs are not those of what is there now."""

    status = 75


class ChatError(RatchetError):
    """A model on another server does not answer or refuses."""


def without_password(url: str) -> str:
    """A URL that may be shown and stored."""
    return re.sub(r"//[^/@\s]*@", "//", url)
