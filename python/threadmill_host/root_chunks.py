"""The chunks of a run's root graph, in the order of its checkpoints."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.pregel.protocol import StreamProtocol
from langgraph.runtime import Runtime

from .context import CURRENT_RUN
from .store import HostStore

Take = Callable[[Sequence[str], str, Any], None]

# Keys of `configurable` with which LangGraph copies the chunks of a graph to a parent. It reads the runtime of that parent, too.
_STREAM = "__pregel_stream"
_RUNTIME = "__pregel_runtime"
# Key of `configurable` inside a node.
_TASK = "__pregel_task_id"

# LangGraph adds the chunks of these modes to the stream itself. It delivers them before it stores the checkpoint of their step.
_OTHER_MODES = {"custom", "messages", "tools"}


class RootChunks:
    """Takes chunks before the checkpoint of their step is stored.

    LangGraph waits for the commit of a checkpoint before its stream delivers the chunks of the step: if the host died in
    between, their events would be lost.
    """

    def __init__(self, modes: Sequence[Any], take: Take) -> None:
        self._modes = modes
        self._take = take
        self._undelivered: deque[tuple[Sequence[str], str, Any]] = deque()
        # The next chunks of the stream that have been taken already.
        self._ahead: deque[tuple[Sequence[str], str, Any]] = deque()

    def with_stream(self, config: RunnableConfig) -> RunnableConfig:
        """Returns the config for a stream of the modes. With a runtime, LangGraph ignores the store of the graph."""
        runtime: Runtime[Any] = Runtime(store=HostStore(CURRENT_RUN.get()))
        own = {_STREAM: StreamProtocol(self._add, set(self._modes)), _RUNTIME: runtime}
        return {**config, "configurable": {**config.get("configurable", {}), **own}}

    def _add(self, chunk: tuple[Sequence[str], str, Any]) -> None:
        # Graphs inside a node inherit the config. The namespace of one that has its own thread may be empty, too. The chunks of a `@task`,
        # which the root graph adds inside the node that calls it, are taken when they are delivered.
        if not chunk[0] and not _is_in_node():
            self._undelivered.append(chunk)

    def take_undelivered(self) -> None:
        """Called before a checkpoint with the root namespace is stored."""
        if _is_in_node():
            return
        while self._undelivered:
            chunk = self._undelivered.popleft()
            self._ahead.append(chunk)
            self._take(*chunk)

    def deliver(self, namespace: Sequence[str], mode: str, data: Any) -> None:
        """Takes a chunk of the stream unless it has been taken."""
        if namespace or mode in _OTHER_MODES:
            self._take(namespace, mode, data)
        elif _begins_with(self._ahead, mode, data):
            self._ahead.popleft()
        elif _begins_with(self._undelivered, mode, data):
            self._undelivered.popleft()
            self._take(namespace, mode, data)
        elif not _is_state(mode, data):
            self._take(namespace, mode, data)


def _is_in_node() -> bool:
    config = var_child_runnable_config.get()
    return config is not None and _TASK in config.get("configurable", {})


def _is_state(mode: str, data: Any) -> bool:
    """Whether only a graph can add such a chunk, so that inside a node it is that of another graph."""
    return mode in ("values", "checkpoints") or (mode == "debug" and data.get("type") == "checkpoint")


def _begins_with(chunks: deque[tuple[Sequence[str], str, Any]], mode: str, data: Any) -> bool:
    """False for chunks of a graph inside a node that has the namespace of the root graph."""
    return bool(chunks) and chunks[0][1] == mode and chunks[0][2] is data
