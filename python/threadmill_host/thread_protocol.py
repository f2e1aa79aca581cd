"""Converts the stream of a graph to events of the thread protocol."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import orjson
from langgraph.pregel import Pregel

from .commands import INTERRUPT
from .lifecycle import Lifecycle, LifecycleEvent
from .message_blocks import MessageBlocks, MessageEvent
from .messages import Message
from .root_chunks import RootChunks
from .scope import Scope
from .stream_modes import Emit, StreamedState, event_name, has_interrupts, is_breakpoint, public_task
from .wire import to_wire

# Prefix of the types of events in the form of the thread protocol: `v2/<method>|<namespace>`.
PROTOCOL_PREFIX = "v2/"

# The modes of `graph.astream()` that contain all channels of the thread protocol.
PROTOCOL_MODES: list[Any] = ["values", "updates", "messages", "tools", "custom", "tasks"]


async def stream_thread_protocol(
    graph: Pregel[Any, Any, Any, Any],
    graph_input: Any,
    config: Any,
    options: Message,
    emit: Emit,
    streamed: StreamedState,
    room: Callable[[], Awaitable[None]],
    scope: Scope,
) -> None:
    """Streams a run of the graph as events of the thread protocol, and records the state of the graph."""
    translator = ThreadProtocolTranslator(emit, streamed)
    root_chunks = scope.root_chunks = RootChunks(
        PROTOCOL_MODES, lambda namespace, mode, payload: translator.take(list(namespace), mode, payload)
    )
    own_config = root_chunks.with_stream(config)
    chunks: Any = graph.astream(graph_input, own_config, **options, stream_mode=PROTOCOL_MODES, subgraphs=True)
    try:
        async with aclosing(chunks):
            async for namespace, mode, payload in chunks:
                root_chunks.deliver(namespace, mode, payload)
                await room()
        translator.end()
    except BaseException:
        translator.fail()
        raise
    finally:
        translator.request_responses()


class ThreadProtocolTranslator:
    """Converts chunks of the graph to events of the log."""

    def __init__(self, emit: Emit, state: StreamedState) -> None:
        self._emit = emit
        self._state = state
        self._messages = MessageBlocks()
        self._lifecycle = Lifecycle()
        # By id. A subgraph reports an interrupt before its parents report it again.
        self._interrupts: dict[str, tuple[list[str], Message]] = {}

    def take(self, namespace: list[str], mode: str, payload: Any) -> None:
        if mode == "messages":
            for event in self._messages.take(*payload):
                self._send_message(event)
            return
        is_result = mode == "tasks" and "result" in payload
        if is_result:
            for event in self._messages.end_task(namespace, payload["name"], payload["id"]):
                self._send_message(event)
        if not namespace and is_breakpoint(mode, payload):
            self._state.record_breakpoint()
        self._send_lifecycle(self._lifecycle.before(namespace, payload if mode == "tasks" else None))
        if mode == "values":
            self._take_values(namespace, payload)
        else:
            node, data = _CONVERSIONS[mode](payload)
            self._send(mode, namespace, data, node)
        if is_result:
            self._lifecycle.after_result(namespace, payload)

    def end(self) -> None:
        """Called when the stream has ended without an error."""
        for event in self._messages.end():
            self._send_message(event)
        self._send_lifecycle(self._lifecycle.end())

    def fail(self) -> None:
        """Called when the stream has ended with an error."""
        for event in self._messages.fail():
            self._send_message(event)
        self._send_lifecycle(self._lifecycle.fail())

    def request_responses(self) -> None:
        """Requests the responses to interrupts: clients stop reading the other events of the run then."""
        for namespace, request in self._interrupts.values():
            self._send("input.requested", namespace, request)

    def _take_values(self, namespace: list[str], payload: Any) -> None:
        if not namespace:
            self._state.record(payload)
        if not has_interrupts(payload):
            text = self._send("values", namespace, payload)
            if not namespace and payload is self._state.last_values:
                self._state.last_values_text = text
            return
        for interrupt in payload[INTERRUPT]:
            # The JavaScript client reads `payload`, the Python client `value`.
            request = {"interrupt_id": interrupt.id, "payload": interrupt.value, "value": interrupt.value}
            self._interrupts.setdefault(interrupt.id, (namespace, request))
        values = {key: value for key, value in payload.items() if key != INTERRUPT}
        if values:
            self._send("values", namespace, values)

    def _send_message(self, event: MessageEvent) -> None:
        self._send_lifecycle(self._lifecycle.before(event.namespace, None))
        self._send("messages", event.namespace, event.data, event.node)

    def _send_lifecycle(self, events: Sequence[LifecycleEvent]) -> None:
        for namespace, data in events:
            # LangGraph reports subgraphs that wait for a response as completed.
            if data["event"] == "completed" and self._waits(namespace):
                data = {**data, "event": "interrupted"}
            self._send("lifecycle", namespace, data)

    def _waits(self, namespace: Sequence[str]) -> bool:
        return any(at[: len(namespace)] == list(namespace) for at, _ in self._interrupts.values())

    def _send(self, method: str, namespace: Sequence[str], data: Any, node: str | None = None) -> str:
        text = to_wire(data)
        about = "" if node is None else f'"node":{orjson.dumps(node).decode()},'
        event = f'{{"timestamp":{int(time.time() * 1000)},{about}"data":{text}}}'
        self._emit(event_name(PROTOCOL_PREFIX + method, namespace), event)
        return text


def _updates(payload: Any) -> tuple[str | None, Message]:
    if not isinstance(payload, Mapping) or not payload:
        return None, {"values": {}}
    node, values = next(iter(payload.items()))
    is_object = isinstance(values, (Mapping, list, tuple))
    return node, {"node": node, "values": values if is_object else {"value": values}}


def _custom(payload: Any) -> tuple[None, Any]:
    is_named = isinstance(payload, Mapping) and "name" in payload
    return None, payload if is_named else {"payload": payload}


_CONVERSIONS: dict[str, Callable[[Any], tuple[str | None, Any]]] = {
    "updates": _updates,
    "custom": _custom,
    "tasks": lambda payload: (None, public_task(payload)),
    "tools": lambda payload: (None, payload),
}
