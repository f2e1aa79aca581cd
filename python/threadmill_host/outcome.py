"""How a run ended."""

from collections.abc import Mapping
from typing import Any

from langgraph.errors import GraphDrained
from langgraph.pregel import Pregel

from .commands import INTERRUPT
from .execution import Execution
from .messages import Message
from .scope import SCOPE, Scope
from .state import summarize
from .stream_modes import StreamedState
from .wire import text_of, to_wire

Graph = Pregel[Any, Any, Any, Any]


async def finished(graph: Graph, order: Message, scope: Scope, streamed: StreamedState) -> Message:
    interrupts = streamed.interrupts
    if interrupts is None and streamed.has_values:
        # The last values of a completed graph are its state.
        output = streamed.last_values_text or to_wire(streamed.last_values)
        state: Message = {"values": output, "next": [], "interrupts": "{}"}
        return _outcome("success", output, state)
    state = await _read_summary(graph, order, scope)
    ended = "interrupted" if interrupts is not None or state["next"] else "success"
    if interrupts is None:
        return _outcome(ended, state["values"], state)
    values = streamed.last_values if isinstance(streamed.last_values, Mapping) else {}
    return _outcome(ended, to_wire({**values, INTERRUPT: interrupts}), state)


async def failed(error: BaseException | None, graph: Graph | None, execution: Execution, scope: Scope) -> Message:
    state = None
    if graph is not None:
        try:
            state = await _read_summary(graph, execution.order, scope)
        except Exception:
            state = None
    output = state["values"] if state else "null"
    if execution.controls.abort_reason is not None:
        return _outcome("aborted", output, state)
    if isinstance(error, GraphDrained):
        return _outcome("drained", output, state)
    return _outcome("error", output, state, describe_error(error))


def _outcome(ended: str, output: str, state: Message | None, error: Message | None = None) -> Message:
    outcome: Message = {"ended": ended, "output": output}
    if state is not None:
        outcome["state"] = state
    if error is not None:
        outcome["error"] = error
    return outcome


def describe_error(error: BaseException | None) -> Message:
    """Returns the class name and the message of an error."""
    name = getattr(error, "name", None) if type(error).__name__ == "ServiceError" else None
    return {"error": name or type(error).__name__, "message": text_of(str(error) or repr(error))}


async def _read_summary(graph: Graph, order: Message, scope: Scope) -> Message:
    return summarize(await graph.aget_state(state_config(order, scope)))


def state_config(order: Message, scope: Scope) -> Any:
    """Returns the config for reading the newest state of the run's thread."""
    # The head is valid only for the run, and only while it is the newest checkpoint.
    own = Scope(run=scope.run, metadata=scope.metadata, is_resume_consumed=scope.is_resume_consumed)
    return {"configurable": {"thread_id": order["thread_id"], SCOPE: own}}
