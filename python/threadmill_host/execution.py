"""A run to execute, and how it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.runtime import RunControl

from threadmill.tokens import RequestToken

from .load import LoadedGraphs
from .messages import Message
from .stream_modes import Emit


@dataclass
class RunControls:
    """Stops a run. A run that is aborted before it has started does not start."""

    control: RunControl = field(default_factory=RunControl)
    abort_reason: str | None = None
    aborted_at: float | None = None
    task: asyncio.Task[Any] | None = None

    def abort(self, reason: str) -> None:
        if self.abort_reason is not None:
            return
        self.abort_reason = reason
        self.aborted_at = asyncio.get_running_loop().time()
        # No further step starts, even if a node swallows the cancel.
        self.control.request_drain()
        # Once, because a second cancel would interrupt clean-up code that awaits.
        if self.task is not None:
            self.task.cancel()

    def drain(self) -> None:
        self.control.request_drain()


@dataclass
class Execution:
    order: Message
    head: Message | None
    prior_writes: list[Message]
    # Whether a task of the graph or of a subgraph has consumed a resume value of the run in an earlier claim.
    resume_consumed: bool
    graphs: LoadedGraphs
    controls: RunControls
    emit: Emit
    # Waits until the run may send more events.
    room: Callable[[], Awaitable[None]]
    request_token: RequestToken
    # Traces the run.
    tracer: BaseCallbackHandler | None = None

    @property
    def kwargs(self) -> Message:
        kwargs: Message = self.order["kwargs"]
        return kwargs
