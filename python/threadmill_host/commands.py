"""Commands of clients, and the writes with which LangGraph records them."""

from collections.abc import Mapping
from typing import Any

from langgraph.types import Command, Send

# Channel names of LangGraph, the same in all versions.
RESUME = "__resume__"
INTERRUPT = "__interrupt__"
TASKS = "__pregel_tasks"

# The task to which LangGraph assigns the writes of a command.
NULL_TASK = "00000000-0000-0000-0000-000000000000"


def is_pending_resume(task_id: str, channel: str) -> bool:
    """Whether a write is the resume value of a run, which the first node that interrupts consumes."""
    return channel == RESUME and task_id == NULL_TASK


def is_consumed_resume(task_id: str, channel: str) -> bool:
    """Whether a write is the copy of a resume value that a node has consumed."""
    return channel == RESUME and task_id != NULL_TASK


def _with_pairs(update: Any) -> Any:
    """JSON has no tuples, but LangGraph accepts a list of updates only as (key, value) tuples."""
    is_pairs = isinstance(update, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in update
    )
    return [tuple(pair) for pair in update] if is_pairs else update


def to_command(command: Mapping[str, Any]) -> Command[Any]:
    """Converts the client's command to LangGraph's."""
    fields: dict[str, Any] = {}
    if "resume" in command:
        fields["resume"] = command["resume"]
    if command.get("update") is not None:
        fields["update"] = _with_pairs(command["update"])
    goto = command.get("goto")
    if goto is not None:
        targets = goto if isinstance(goto, list) else [goto]
        fields["goto"] = [
            target if isinstance(target, str) else Send(target["node"], target.get("input")) for target in targets
        ]
    return Command(**fields)
