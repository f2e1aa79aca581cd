"""When a run waits for the commit of its checkpoint."""

from collections.abc import Collection, Mapping
from typing import Any

from langgraph.pregel import Pregel

from .commands import TASKS

# Nodes that LangGraph adds. Their repetition has no visible effect.
_INTERNAL_NODES = {"__start__", "__input__", "__interrupt__", "__snapshot_bumps__"}


class CommitPoints:
    """Decides when a run waits for the commit of its checkpoint.

    With durability "sync" a crash repeats at most one step of user code. Writes are stored in order, so a root graph
    waits only if user code has run in the completed step and may run in the next one. The first two checkpoints (input
    and `__start__`) and the last need no wait, which saves three of the five commits of a run with one node.
    """

    def __init__(self, durability: str | None, graph: Pregel[Any, Any, Any, Any]) -> None:
        self._durability = durability or "sync"
        # Channels that trigger nodes of the root graph.
        self._triggers = {trigger for node in graph.nodes.values() for trigger in node.triggers}
        # A DeltaChannel with a value is absent from most checkpoints.
        self._deltas = {name for name, channel in graph.channels.items() if type(channel).__name__ == "DeltaChannel"}
        # The channel versions that user nodes had seen when the run's input was stored.
        self._seen_at_input: dict[str, Any] | None = None

    def must_wait_for(
        self, checkpoint_ns: str, checkpoint: Mapping[str, Any], source: str | None, changed: Collection[str]
    ) -> bool:
        """Whether the run must wait until this checkpoint is committed."""
        # With "async" and "exit" LangGraph waits only at the end of the run, which the service does anyway.
        if self._durability != "sync":
            return False
        if checkpoint_ns != "":
            return source != "input"
        return self._user_code_ran(checkpoint, source) and self._may_continue(checkpoint, changed)

    def _user_code_ran(self, checkpoint: Mapping[str, Any], source: str | None) -> bool:
        seen_at_input = self._seen_at_input
        if source == "input":
            self._seen_at_input = _seen_by_user_nodes(checkpoint)
            return False
        # After the input, only the first step can run without user code. In every later step, user code has run.
        self._seen_at_input = None
        return seen_at_input is None or seen_at_input != _seen_by_user_nodes(checkpoint)

    def _may_continue(self, checkpoint: Mapping[str, Any], changed: Collection[str]) -> bool:
        """Applies LangGraph's rule: another step follows if a changed channel that has a value triggers a node."""
        values = checkpoint["channel_values"]
        return any(
            (channel in values or channel in self._deltas) and (channel == TASKS or channel in self._triggers)
            for channel in changed
        )


def _seen_by_user_nodes(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the versions that user nodes have seen: equal before and after a step in which none of them ran."""
    return {
        node: dict(versions) for node, versions in checkpoint["versions_seen"].items() if node not in _INTERNAL_NODES
    }
