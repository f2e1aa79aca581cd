"""Converts the messages of a graph to the content blocks of the thread protocol."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from langchain_core.messages import BaseMessage, BaseMessageChunk

from .messages import Message
from .wire import to_wire

_DELTAS = {"text": "text-delta", "reasoning": "reasoning-delta", "args": "tool-call-delta"}

# Parts of providers that repeat what the message has as tool calls.
_CALL_PARTS = {"tool_use", "input_json_delta", "tool_call", "tool_call_chunk", "functionCall"}

_ROLES = {"human": "human", "system": "system"}


@dataclass
class MessageEvent:
    """An event of the channel `messages`, from one node."""

    namespace: list[str]
    node: str | None
    data: Message


@dataclass
class _Block:
    key: str
    # The block without its streamed text.
    content: Message
    # The field with the streamed text: text, reasoning or args.
    field: str | None
    text: str = ""
    is_finished: bool = False


@dataclass
class _OpenMessage:
    id: str
    namespace: list[str]
    node: str | None
    # All chunks together.
    whole: Any
    blocks: list[_Block] = field(default_factory=list)

    def event(self, data: Message) -> MessageEvent:
        # The Python client assigns events to concurrent messages by `message_id`, the JavaScript client by `run_id`.
        return MessageEvent(self.namespace, self.node, {**data, "message_id": self.id, "run_id": self.id})


class MessageBlocks:
    """Converts messages, and parts of messages, to events.

    LangChain's own conversion (`astream_events` v3) makes models run through another code path, so a graph could
    behave differently under it.
    """

    def __init__(self) -> None:
        self._open: dict[str, _OpenMessage] = {}

    def take(self, message: Any, metadata: Mapping[str, Any]) -> list[MessageEvent]:
        """Takes a chunk of LangGraph's mode `messages`: a message, or a part of one, and its metadata."""
        is_chunk = isinstance(message, BaseMessageChunk)
        if not isinstance(message, BaseMessage) or not message.id or message.type in ("tool", "ToolMessageChunk"):
            return []
        known = self._open.get(message.id)
        if known is None:
            namespace = (metadata.get("langgraph_checkpoint_ns") or metadata.get("checkpoint_ns") or "").split("|")
            opened = _OpenMessage(message.id, namespace, metadata.get("langgraph_node"), message)
            events = [opened.event({"event": "message-start", **_start_of(message, metadata)})]
        else:
            opened, events = known, []
            opened.whole = opened.whole + message if is_chunk else message
        events += _parts(opened, message, is_chunk)
        if is_chunk:
            self._open[message.id] = opened
        else:
            self._open.pop(message.id, None)
            events += _finish(opened)
        return events

    def end_task(self, namespace: Iterable[str], name: str, task_id: str) -> list[MessageEvent]:
        """Finishes the messages of a task that has ended."""
        task = [*namespace, f"{name}:{task_id}"]
        return self._end(_finish, lambda message: message.namespace == task)

    def end(self) -> list[MessageEvent]:
        """Finishes the messages that are still open."""
        return self._end(_finish, lambda _: True)

    def fail(self) -> list[MessageEvent]:
        """Ends the messages that are still open with an error."""
        failure = {"event": "error", "message": "The message was not completed."}
        return self._end(lambda message: [message.event(failure)], lambda _: True)

    def _end(
        self, close: Callable[[_OpenMessage], list[MessageEvent]], is_ended: Callable[[_OpenMessage], bool]
    ) -> list[MessageEvent]:
        ended = [message for message in self._open.values() if is_ended(message)]
        for message in ended:
            del self._open[message.id]
        return [event for message in ended for event in close(message)]


def _parts(opened: _OpenMessage, message: BaseMessage, is_chunk: bool) -> list[MessageEvent]:
    events: list[MessageEvent] = []
    reasoning = message.additional_kwargs.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        events += _add(opened, "reasoning", {"type": "reasoning"}, "reasoning", reasoning)
    content = message.content if isinstance(message.content, list) else [message.content]
    for part in content:
        events += _add_part(opened, {"type": "text", "text": part} if isinstance(part, str) else part)
    calls: Iterable[Mapping[str, Any]] = (
        getattr(message, "tool_call_chunks", None) or []
        if is_chunk
        else [
            {**call, "index": index, "args": to_wire(call.get("args"))}
            for index, call in enumerate(getattr(message, "tool_calls", None) or [])
        ]
    )
    for call in calls:
        key = call.get("index") if call.get("index") is not None else call.get("id")
        block = {"type": "tool_call_chunk", "id": call.get("id"), "name": call.get("name")}
        events += _add(opened, f"call {key}", block, "args", call.get("args") or "")
    return events


def _add_part(opened: _OpenMessage, part: Message) -> list[MessageEvent]:
    kind, index = part.get("type", ""), part.get("index")
    if kind in _CALL_PARTS:
        return []
    key = f"{kind} {'' if index is None else index}"
    if kind == "text":
        text = part.get("text") or ""
        return _add(opened, key, {"type": kind}, "text", text) if text else []
    if kind in ("reasoning", "thinking"):
        reasoning = part.get("reasoning") or part.get("thinking")
        return _add(opened, key, {"type": "reasoning"}, "reasoning", reasoning) if reasoning else []
    return _add(opened, f"{key}{len(opened.blocks)}" if index is None else key, part, None, "")


def _add(opened: _OpenMessage, key: str, content: Message, text_field: str | None, text: str) -> list[MessageEvent]:
    """Adds text to the open block with the key, which is created if there is none.

    The blocks before a new one are finished first.
    """
    events: list[MessageEvent] = []
    block = next((one for one in reversed(opened.blocks) if one.key == key and not one.is_finished), None)
    if block is None:
        events += _finish_blocks(opened, _may_finish)
        block = _Block(key, content, text_field)
        opened.blocks.append(block)
        start = {**content, text_field: ""} if text_field else content
        events.append(opened.event({"event": "content-block-start", "index": len(opened.blocks) - 1, "content": start}))
    block.text += text
    if text_field == "args":
        block.content = {**block.content, **_without_empty({"id": content.get("id"), "name": content.get("name")})}
    if text_field and text:
        delta = {"type": _DELTAS[text_field], text_field: text}
        events.append(
            opened.event({"event": "content-block-delta", "index": opened.blocks.index(block), "delta": delta})
        )
    return events


def _may_finish(block: _Block) -> bool:
    """Some models stream the arguments of several tool calls alternately."""
    if block.field != "args":
        return True
    return block.text != "" and _tool_call(block.content, block.text)["type"] == "tool_call"


def _finish_blocks(opened: _OpenMessage, is_ended: Callable[[_Block], bool]) -> list[MessageEvent]:
    events = []
    for index, block in enumerate(opened.blocks):
        if block.is_finished or not is_ended(block):
            continue
        block.is_finished = True
        if block.field == "args":
            content = _tool_call(block.content, block.text)
        else:
            content = {**block.content, block.field: block.text} if block.field else block.content
        events.append(opened.event({"event": "content-block-finish", "index": index, "content": content}))
    return events


def _finish(opened: _OpenMessage) -> list[MessageEvent]:
    details = _without_empty(
        {"usage": getattr(opened.whole, "usage_metadata", None), "metadata": opened.whole.response_metadata}
    )
    return [*_finish_blocks(opened, lambda _: True), opened.event({"event": "message-finish", **details})]


def _tool_call(content: Message, text: str) -> Message:
    call = {"id": content.get("id"), "name": content.get("name")}
    try:
        args = orjson.loads(text or "{}")
    except ValueError:
        args = None
    if isinstance(args, (dict, list)):
        return {"type": "tool_call", **call, "args": args}
    error = "The arguments are not a JSON object."
    return {"type": "invalid_tool_call", **call, "args": text, "error": error}


def _start_of(message: BaseMessage, metadata: Mapping[str, Any]) -> Message:
    kind = message.type.removesuffix("MessageChunk").lower()
    details = {
        "langgraph_node": metadata.get("langgraph_node"),
        "provider": metadata.get("ls_provider"),
        "model": metadata.get("ls_model_name"),
    }
    return {"id": message.id, "role": _ROLES.get(kind, "ai"), "metadata": _without_empty(details)}


def _without_empty(fields: Message) -> Message:
    return {name: value for name, value in fields.items() if value is not None}
