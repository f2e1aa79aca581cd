"""Converts the stream of a graph to the events that the client requested."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message

from .commands import INTERRUPT
from .state import to_checkpoint_key
from .wire import to_wire

Emit = Callable[[str, str], None]

# LangGraph modes by stream mode of the API, where they differ. `messages` supplies tokens, and `values` supplies
# messages that no model has streamed.
_SOURCES: dict[str, list[str]] = {"messages-tuple": ["messages"], "messages": ["messages", "values"], "events": []}


def source_modes(requested: Sequence[str]) -> list[str]:
    """Returns the LangGraph modes for the requested modes.

    `values` is always included: its last event is the run's output. Only `updates` reports a breakpoint.
    """
    wanted = [source for mode in requested for source in _SOURCES.get(mode, [mode])]
    return list(dict.fromkeys(["values", "updates", *wanted]))


class StreamedState:
    """The state of a run's graph according to its stream."""

    def __init__(self) -> None:
        # The last complete state of the root graph.
        self.last_values: Any = None
        self.has_values = False
        # The last complete state as JSON text, if it was sent as an event.
        self.last_values_text: str | None = None
        # The interrupts of the root graph: empty for a breakpoint, None if it was not interrupted.
        self.interrupts: list[Any] | None = None

    def record(self, chunk: Any) -> None:
        """Takes a chunk of the mode `values` of the root graph."""
        self.last_values_text = None
        if not has_interrupts(chunk):
            self.last_values = chunk
            self.has_values = True
            return
        self.interrupts = [*(self.interrupts or []), *chunk[INTERRUPT]]
        values = {key: value for key, value in chunk.items() if key != INTERRUPT}
        if values:
            self.last_values = values
            self.has_values = True

    def record_breakpoint(self) -> None:
        if self.interrupts is None:
            self.interrupts = []


def has_interrupts(chunk: Any) -> bool:
    return isinstance(chunk, Mapping) and INTERRUPT in chunk


def is_breakpoint(mode: str, chunk: Any) -> bool:
    return mode == "updates" and has_interrupts(chunk) and len(chunk[INTERRUPT]) == 0


class StreamTranslator:
    """Converts chunks of the graph to events, and records the state of the graph."""

    def __init__(self, requested: Sequence[str], emit: Emit, state: StreamedState) -> None:
        self._requested = frozenset(requested)
        self._emit = emit
        self._state = state
        self._messages = _MessageEvents(emit)

    def take(self, namespace: Sequence[str], mode: str, chunk: Any) -> None:
        if not namespace:
            if mode == "values":
                self._state.record(chunk)
            elif is_breakpoint(mode, chunk):
                self._state.record_breakpoint()
                if "values" in self._requested:
                    self._emit("values", to_wire({INTERRUPT: []}))
        if "messages" in self._requested:
            if mode == "messages":
                self._messages.take_token(chunk)
            elif mode == "values":
                self._messages.take_values(chunk)
        if mode == "messages":
            if "messages-tuple" in self._requested:
                self._emit(event_name("messages", namespace), to_wire(chunk))
        elif mode in self._requested:
            convert = _CONVERSIONS.get(mode)
            text = to_wire(convert(chunk) if convert else chunk)
            if mode == "values" and chunk is self._state.last_values:
                self._state.last_values_text = text
            self._emit(event_name(mode, namespace), text)

    def take_event(self, event: Mapping[str, Any]) -> None:
        """Takes an event of the mode `events`."""
        if "langsmith:hidden" in (event.get("tags") or ()):
            return
        self._emit("events", to_wire(_public_event(event)))


def event_name(event: str, namespace: Sequence[str]) -> str:
    return "|".join([event, *namespace])


def _public_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = event.get("metadata") or {}
    if not any(key.startswith("__") for key in metadata):
        return event
    return {**event, "metadata": {key: value for key, value in metadata.items() if not key.startswith("__")}}


def _public_debug(chunk: Mapping[str, Any]) -> dict[str, Any]:
    to_public = _public_checkpoint if chunk["type"] == "checkpoint" else public_task
    return {**chunk, "payload": to_public(chunk["payload"])}


def _public_checkpoint(payload: Mapping[str, Any]) -> dict[str, Any]:
    config, parent_config = payload.get("config"), payload.get("parent_config")
    return {
        **payload,
        "config": _public_config(config),
        "parent_config": _public_config(parent_config),
        "checkpoint": to_checkpoint_key(config) if config else None,
        "parent_checkpoint": to_checkpoint_key(parent_config) if parent_config else None,
        "tasks": [public_task(task) for task in payload.get("tasks") or ()],
    }


def public_task(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a task with a reference to the checkpoint of its subgraph instead of a config."""
    task = {key: value for key, value in payload.items() if key != "state"}
    state = payload.get("state")
    return {**task, "state": None, "checkpoint": to_checkpoint_key(state)} if state is not None else task


def _public_config(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the config without LangGraph's objects, internal keys and the caller's identity."""
    if not config:
        return None
    configurable = {
        key: value
        for key, value in (config.get("configurable") or {}).items()
        if not key.startswith(("__", "langgraph_auth_"))
    }
    return {**{key: value for key, value in config.items() if key != "callbacks"}, "configurable": configurable}


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "debug": _public_debug,
    "checkpoints": _public_checkpoint,
    "tasks": public_task,
}


class _MessageEvents:
    """Creates the events of the mode `messages`: partial messages for tokens, and each complete message once."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._partial: dict[str, BaseMessageChunk] = {}
        self._complete: set[str] = set()

    def take_token(self, part: tuple[Any, dict[str, Any]]) -> None:
        chunk, metadata = part
        # A node may also return a chunk, but only chunks from a model have `ls_model_type` in their metadata.
        if not isinstance(chunk, BaseMessageChunk) or metadata.get("ls_model_type") is None or not chunk.id:
            return
        previous = self._partial.get(chunk.id)
        if previous is None:
            self._emit("messages/metadata", to_wire({chunk.id: {"metadata": metadata}}))
        whole: Any = chunk if previous is None else previous + chunk
        self._partial[chunk.id] = whole
        self._emit("messages/partial", to_wire([message_chunk_to_message(whole)]))

    def take_values(self, values: Any) -> None:
        messages = values.get("messages") if isinstance(values, Mapping) else None
        completed = []
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, BaseMessage) and message.id and message.id not in self._complete:
                self._complete.add(message.id)
                completed.append(message)
        if completed:
            self._emit("messages/complete", to_wire(completed))
