"""The chunks of a run's root graph, in the order of its checkpoints."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import StreamProtocol
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

Take = Callable[[Sequence[str], str, Any], None]

# Keys of `configurable` with which LangGraph copies the chunks of a graph to a parent. It reads the runtime of that parent, too.
_STREAM = "__pregel_stream"
_RUNTIME = "__pregel_runtime"

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
        self._ahead = 0

    def with_stream(self, config: RunnableConfig, store: BaseStore | None) -> RunnableConfig:
        """Returns the config for a stream of the modes. With a runtime, LangGraph ignores the store of the graph."""
        own = {_STREAM: StreamProtocol(self._add, set(self._modes)), _RUNTIME: Runtime(store=store)}
        return {**config, "configurable": {**config.get("configurable", {}), **own}}

    def _add(self, chunk: tuple[Sequence[str], str, Any]) -> None:
        # Subgraphs inherit the config.
        if not chunk[0]:
            self._undelivered.append(chunk)

    def take_undelivered(self) -> None:
        """Called before a checkpoint of the root graph is stored."""
        self._ahead += len(self._undelivered)
        while self._undelivered:
            self._take(*self._undelivered.popleft())

    def deliver(self, namespace: Sequence[str], mode: str, data: Any) -> None:
        """Takes a chunk of the stream unless it has been taken."""
        if namespace or mode in _OTHER_MODES:
            self._take(namespace, mode, data)
        elif self._ahead > 0:
            self._ahead -= 1
        else:
            self._undelivered.popleft()
            self._take(namespace, mode, data)
