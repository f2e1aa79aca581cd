"""Sends the trace of a run to the service."""

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from .commands import INTERRUPT
from .messages import Message
from .wire import text_of, to_wire_bytes

FLUSH_SECONDS = 0.25
# A run that is still open after this time is sent before its end. Most runs end sooner and are sent once.
OPEN_SECONDS = 0.5
MAX_BUFFERED = 100
# Larger messages are split. When the buffered payloads exceed this size, they are sent immediately.
MAX_BATCH_BYTES = 8 * 2**20
# The limit of a field in `POST /runs`.
MAX_FIELD_BYTES = 20 * 2**20
# A message of the protocol holds the run as a string, in which each byte may need a second one.
MAX_RUN_BYTES = 30 * 2**20

# LangGraph's own steps, such as `__start__`, which repeats the input.
HIDDEN_TAG = "langsmith:hidden"
ABANDONED = "The run ended before this step finished."

# Parts of names that denote secrets, such as `api_key` and `accessToken`, but not `max_tokens`.
_SECRET = re.compile(r"token(?!s\b|s_|_count|_usage)|secret|password|api[_-]?key|authorization", re.IGNORECASE)
_HIDDEN_PREFIXES = ("__", "langgraph_auth_", "langsmith")

_FIELDS = ("id", "trace_id", "dotted_order", "parent_run_id", "name", "run_type", "start_time", "end_time", "error")
# Run types whose constructor arguments are stored. LangChain reports those of every object.
_SERIALIZED_TYPES = ("llm", "prompt")
_UUID_CHARS = 36

SendRuns = Callable[[str, bool], None]


@dataclass
class _Span:
    # All fields except inputs and outputs, as the tracer last reported them.
    fields: Message
    # JSON text, because the graph may change the objects later. Inputs are sent once.
    inputs: bytes | None
    outputs: bytes | None = None
    has_inputs: bool = False
    is_ended: bool = False
    is_sent: bool = False
    created_at: float = field(default_factory=time.monotonic)


class TraceSink:
    """Takes the runs of a trace as LangSmith's client does. A traced run that is open for longer is sent twice.

    The methods are called from callbacks in any thread, so they neither raise nor wait.
    """

    def __init__(self, order: Message, trace: Message, send: SendRuns, loop: asyncio.AbstractEventLoop) -> None:
        self.run_id = str(order["run_id"])
        self.trace = trace
        self._order = order
        self._send = send
        self._is_repeated = bool(order["epoch"] > 1)
        self._loop = loop
        self._lock = threading.RLock()
        self._spans: dict[str, _Span] = {}
        self._hidden: set[str] = set()
        # The reported end of the root, kept until the outcome is known: a run that continues elsewhere has not ended.
        self._root_end: Message = {}
        self._ended = 0
        self._buffered_bytes = 0
        self._is_finished = False
        self._timer = loop.call_later(FLUSH_SECONDS, self._on_timer)

    def create_run(self, **run: Any) -> None:
        with suppress(Exception), self._lock:
            self._create(run)

    def update_run(self, run_id: Any, **run: Any) -> None:
        with suppress(Exception), self._lock:
            self._update(str(run_id), run)

    def finish(self, outcome: Message, abort_reason: str | None) -> None:
        """Sends the rest of the trace. Called after the outcome has been sent.

        The service ends the open runs of a run that was stopped. A drained run continues in another process.
        """
        self._timer.cancel()
        with self._lock:
            self._is_finished = True
            if outcome["ended"] != "drained" and abort_reason is None:
                with suppress(Exception):
                    self._end(outcome)
            self._send_due(lambda _: True, is_last=True)

    def _create(self, run: Message) -> None:
        if self._is_finished:
            return
        run_id = str(run["id"])
        if HIDDEN_TAG in (run.get("tags") or ()):
            self._hidden.add(run_id)
            return
        span = _Span(fields=run, inputs=_payload_of(run.pop("inputs", None)))
        span.outputs = _payload_of(run.pop("outputs", None) or None)
        span.is_ended = run.get("end_time") is not None and run_id != self.run_id
        span.has_inputs = span.inputs not in (None, b"{}")
        if run_id == self.run_id and self._is_repeated:
            # This attempt continues from a checkpoint, with no input.
            span.inputs, span.has_inputs = self._inputs_of_order(), True
        self._spans[run_id] = span
        self._count(span, span.is_ended)

    def _update(self, run_id: str, run: Message) -> None:
        span = self._spans.get(run_id)
        if self._is_finished or span is None:
            return
        # LangChain repeats the inputs at the end. A node may have changed them, and False marks those that it has set.
        inputs = run.pop("inputs", None) or None
        if not span.has_inputs or (run.get("extra") or {}).get("inputs_is_truthy") is False:
            span.inputs = _payload_of(inputs) or span.inputs
        span.outputs = _payload_of(run.pop("outputs", None) or None) or span.outputs
        if run_id == self.run_id:
            self._root_end = run
            return
        span.fields.update(run)
        span.is_ended = True
        self._count(span, True)

    def _end(self, outcome: Message) -> None:
        root = self._spans.get(self.run_id)
        if root is None:
            # The graph could not be loaded or created.
            root = self._spans[self.run_id] = self._new_root()
        now, error = time.time_ns() // 1_000_000, outcome.get("error")
        root.fields.update(self._root_end)
        root.fields["end_time"] = root.fields.get("end_time") or now
        # An empty text clears the error that an earlier attempt may have stored.
        root.fields["error"] = f"{error['error']}: {error['message']}" if error else "" if self._is_repeated else None
        root.is_ended = True
        if outcome["ended"] == "interrupted":
            self._add_interrupts(root, outcome["output"])
        for span in self._spans.values():
            if not span.is_ended:
                span.fields.update(end_time=now, error=ABANDONED)

    def _add_interrupts(self, root: _Span, output: str) -> None:
        """LangGraph reports interrupts as outputs, except for breakpoints."""
        outputs = root.outputs or b"{}"
        if b'"%s":' % INTERRUPT.encode() not in outputs:
            interrupts = to_wire_bytes((orjson.loads(output) or {}).get(INTERRUPT))
            separator = b"" if outputs == b"{}" else b","
            root.outputs = b'%s%s"%s":%s}' % (outputs[:-1], separator, INTERRUPT.encode(), interrupts)

    def _inputs_of_order(self) -> bytes | None:
        value = self._order["kwargs"].get("input")
        return None if value is None else _payload_of(value if isinstance(value, dict) else {"input": value})

    def _new_root(self) -> _Span:
        parent = self.trace.get("parent") or {}
        fields: Message = {"id": self.run_id, "run_type": "chain", "start_time": self.trace["started_at"]}
        if parent.get("kind") == "run":
            fields["parent_run_id"] = parent["dotted_order"][-_UUID_CHARS:]
        else:
            fields["trace_id"] = self.run_id
        return _Span(fields, self._inputs_of_order() or b"{}")

    def _count(self, span: _Span, is_ended: bool) -> None:
        self._ended += is_ended
        self._buffered_bytes += len(span.inputs or b"") + len(span.outputs or b"")
        if self._ended >= MAX_BUFFERED or self._buffered_bytes > MAX_BATCH_BYTES:
            self._flush()

    def _on_timer(self) -> None:
        with suppress(Exception), self._lock:
            self._flush()
        self._timer = self._loop.call_later(FLUSH_SECONDS, self._on_timer)

    def _flush(self) -> None:
        is_full = self._buffered_bytes > MAX_BATCH_BYTES
        open_since = time.monotonic() - (0 if is_full else OPEN_SECONDS)
        self._send_due(lambda span: span.is_ended or (not span.is_sent and span.created_at <= open_since))

    def _send_due(self, is_due: Callable[[_Span], bool], is_last: bool = False) -> None:
        self._ended = self._buffered_bytes = 0
        texts: list[bytes] = []
        size = 0
        for run_id, span in list(self._spans.items()):
            if not is_due(span):
                continue
            try:
                text = self._text_of(run_id, span)
            except Exception:
                del self._spans[run_id]
                continue
            if texts and size + len(text) > MAX_BATCH_BYTES:
                self._send(b",".join(texts).decode(), False)
                texts, size = [], 0
            texts.append(text)
            size += len(text)
            span.is_sent = True
            if span.is_ended:
                del self._spans[run_id]
        if texts or is_last:
            self._send(b",".join(texts).decode(), is_last)

    def _text_of(self, run_id: str, span: _Span) -> bytes:
        """Returns a JSON object of `POST /runs`."""
        fields, trace = span.fields, self.trace
        parent = trace.get("parent") or {}
        main: Message = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
        # The tracer's errors have a text for the project's own traces, and a brief one.
        main["error"] = getattr(main.get("error"), "brief", main.get("error"))
        main["session_name"] = trace["project_name"]
        tags = list(fields.get("tags") or [])
        metadata = _visible((fields.get("extra") or {}).get("metadata") or {})
        if run_id == self.run_id:
            main["name"] = self._order["graph_id"]
            main["reference_example_id"] = trace.get("example_id")
            if parent.get("kind") == "span":
                main["parent_run_id"] = parent["run_id"]
            tags += trace.get("tags") or []
            metadata.update(trace.get("metadata") or {}, **_deployment())
        if self._hidden:
            self._skip_hidden(main)
        if parent.get("kind") == "span":
            # The position in the trace is unknown until the parent span arrives.
            main.pop("dotted_order", None)
            main.pop("trace_id", None)
        if tags:
            main["tags"] = tags
        text = to_wire_bytes({name: value for name, value in main.items() if value is not None})[:-1]
        serialized = fields.get("serialized") if main.get("run_type") in _SERIALIZED_TYPES else None
        payloads = {
            "extra": _payload_of({**(fields.get("extra") or {}), "metadata": metadata}),
            "events": _payload_of(fields.get("events")),
            "inputs": span.inputs,
            "outputs": span.outputs,
            "serialized": _payload_of(serialized),
        }
        span.inputs = None
        for name, payload in payloads.items():
            if payload is not None:
                payload = _limited(payload, MAX_RUN_BYTES - len(text))
                text += b',"%s":%s' % (name.encode(), payload)
        return text + b"}"

    def _skip_hidden(self, run: Message) -> None:
        """Places a run below its nearest ancestor that is sent."""
        if str(run.get("parent_run_id")) in self._hidden and "dotted_order" in run:
            segments = run["dotted_order"].split(".")
            kept = [segment for segment in segments if segment[-_UUID_CHARS:] not in self._hidden]
            run["dotted_order"] = ".".join(kept)
            run["parent_run_id"] = kept[-2][-_UUID_CHARS:] if len(kept) > 1 else None


def _visible(metadata: Mapping[Any, Any]) -> Message:
    """Leaves out the server's own keys and secrets: LangGraph copies `configurable` into the metadata."""
    return {
        key: value
        for key, value in metadata.items()
        if not str(key).startswith(_HIDDEN_PREFIXES) and not _SECRET.search(str(key))
    }


def _deployment() -> Message:
    """Identifies the deployment with variables that the control plane sets."""
    deployment_id = os.environ.get("LANGSMITH_HOST_PROJECT_ID")
    if deployment_id is None:
        return {}
    return {"deployment_id": deployment_id, "revision_id": os.environ.get("LANGSMITH_HOST_REVISION_ID")}


def _payload_of(value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return _limited(to_wire_bytes(value), MAX_FIELD_BYTES)
    except Exception:
        try:
            # A cycle, or a method of the project's class that raises.
            return _limited(to_wire_bytes({"unserializable": text_of(repr(value))}), MAX_FIELD_BYTES)
        except Exception:
            return to_wire_bytes({"unserializable": type(value).__name__})


def _limited(payload: bytes, limit: int) -> bytes:
    if len(payload) <= limit:
        return payload
    text = f"The value is too large: its JSON has {len(payload)} bytes; the maximum is {MAX_FIELD_BYTES}."
    return orjson.dumps({"dropped": text})
