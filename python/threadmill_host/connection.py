"""The host's connection to the service: one JSON array of messages per line, in both directions."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson

from .frame_socket import FrameSocket
from .messages import MAX_MESSAGE_BYTES, Message, RunKey, too_large
from .pending import Pending, ServiceError
from .wire import to_wire_bytes

# A batch is sent before the turn of the event loop ends when it reaches one of these sizes.
MAX_EVENTS = 64
MAX_BATCH_BYTES = 256_000
# A run with more unacknowledged characters of events takes no further chunk from its stream.
MAX_UNACKNOWLEDGED_CHARS = 4_000_000
MAX_UNSENT_BYTES = 16_000_000

__all__ = ["ServiceConnection", "ServiceError"]


class _Events:
    """The open message that events of a run are added to."""

    def __init__(self, run: RunKey) -> None:
        self.run = run
        self.pairs: list[bytes] = []

    def encode(self) -> bytes:
        head = orjson.dumps({"type": "events", **self.run.fields()})[:-1]
        return head + b',"events":[' + b",".join(self.pairs) + b"]}"


class ServiceConnection:
    """Sends from any thread, and receives in a thread of its own, which works while the event loop is blocked."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = FrameSocket(sock)
        self.loop = loop
        self._lock = threading.RLock()
        self._batch: list[bytes | _Events] = []
        self._batch_bytes = 0
        self._flush_scheduled = False
        self._pending = Pending(loop)
        self._unacknowledged: dict[RunKey, int] = {}
        self._room: asyncio.Future[None] | None = None
        self.loop_thread = threading.get_ident()
        # When the I/O thread handed over messages that the event loop has not taken yet.
        self.handed_at: float | None = None

    def start(self, receive: Callable[[list[Message]], None], on_idle: Callable[[], None]) -> None:
        """Starts the I/O thread. `receive` is called in the event loop, `on_idle` in the thread."""
        self._socket.start(lambda messages: self._take(messages, receive), self._on_sent, on_idle)

    def _take(self, messages: list[Message], receive: Callable[[list[Message]], None]) -> None:
        """Called in the I/O thread."""
        others = [message for message in messages if not self._pending.resolve_event(message)]
        if others:
            self.handed_at = self.handed_at or time.monotonic()
            self.loop.call_soon_threadsafe(self._hand_over, others, receive)

    def _hand_over(self, messages: list[Message], receive: Callable[[list[Message]], None]) -> None:
        try:
            receive([message for message in messages if not self._pending.resolve_future(message)])
        finally:
            self.handed_at = None

    def _on_sent(self) -> None:
        if self._socket.unsent_bytes <= MAX_UNSENT_BYTES:
            self.loop.call_soon_threadsafe(self._wake_runs)

    # Sending

    def post(self, message: Message) -> None:
        """Raises ValueError when the message exceeds the limit of the protocol."""
        encoded = to_wire_bytes(message)
        if len(encoded) > MAX_MESSAGE_BYTES - 1024:
            raise ValueError(too_large(_content_of(message), len(encoded)))
        with self._lock:
            if self._batch_bytes + len(encoded) > MAX_BATCH_BYTES:
                self.flush()
            self._batch.append(encoded)
            self._added(len(encoded))

    def emit(self, run: RunKey, event: str, data: str) -> None:
        """Adds an event. Events and requests stay in order, so a checkpoint never precedes its events."""
        pair = orjson.dumps([event, data])
        if len(pair) > MAX_MESSAGE_BYTES - 1024:
            raise ValueError(too_large("event", len(pair)))
        with self._lock:
            self._unacknowledged[run] = self._unacknowledged.get(run, 0) + len(data)
            if self._batch_bytes + len(pair) > MAX_BATCH_BYTES:
                self.flush()
            last = self._batch[-1] if self._batch else None
            if not isinstance(last, _Events) or last.run != run:
                last = _Events(run)
                self._batch.append(last)
            last.pairs.append(pair)
            self._added(len(pair))
            if len(last.pairs) >= MAX_EVENTS:
                self.flush()

    def _added(self, size: int) -> None:
        self._batch_bytes += size
        if self._batch_bytes > MAX_BATCH_BYTES:
            self.flush()
        elif not self._flush_scheduled:
            self._flush_scheduled = True
            if threading.get_ident() == self.loop_thread:
                self.loop.call_soon(self.flush)
            else:
                self.loop.call_soon_threadsafe(self.flush)

    def flush(self) -> None:
        """Sends the batch without waiting. The I/O thread sends what the socket does not accept at once."""
        with self._lock:
            self._flush_scheduled = False
            if not self._batch:
                return
            parts = [item if isinstance(item, bytes) else item.encode() for item in self._batch]
            self._batch = []
            self._batch_bytes = 0
            frame = b"[" + b",".join(parts) + b"]\n"
            self._socket.send(frame)

    # Requests

    async def request(self, run: RunKey | None, request: Message) -> Any:
        """Raises ServiceError when the service answers with an error."""
        # A synchronous node can run an event loop of its own, which cannot wait for a future of this one.
        if asyncio.get_running_loop() is not self.loop:
            return await asyncio.to_thread(self.request_sync, run, request)
        answer = self._pending.create_future()
        self._post_request(answer.id, run, request)
        return await answer.future

    def request_sync(self, run: RunKey | None, request: Message) -> Any:
        """Waits in the calling thread, which may be that of the event loop: the I/O thread takes the reply."""
        answer = self._pending.create_event()
        self._post_request(answer.id, run, request)
        self.flush()
        return answer.wait()

    def _post_request(self, request_id: int, run: RunKey | None, request: Message) -> None:
        message: Message = {"type": "request", "id": request_id, "request": request}
        if run is not None:
            message["run"] = run.fields()
        try:
            self.post(message)
        except BaseException:
            self._pending.discard(request_id)
            raise

    # Flow control

    async def room_for(self, run: RunKey) -> None:
        """Waits while the run has too many unacknowledged events, or too many bytes are unsent."""
        while (
            self._unacknowledged.get(run, 0) > MAX_UNACKNOWLEDGED_CHARS or self._socket.unsent_bytes > MAX_UNSENT_BYTES
        ):
            if self._room is None or self._room.done():
                self._room = self.loop.create_future()
            self.flush()
            await asyncio.shield(self._room)

    def acknowledge(self, run: RunKey, chars: int) -> None:
        with self._lock:
            if run in self._unacknowledged:
                self._unacknowledged[run] = max(0, self._unacknowledged[run] - chars)
        self._wake_runs()

    def forget(self, run: RunKey) -> None:
        with self._lock:
            self._unacknowledged.pop(run, None)

    def _wake_runs(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def is_sent(self) -> bool:
        with self._lock:
            return self._socket.unsent_bytes == 0 and not self._batch


def _content_of(message: Message) -> str:
    if message["type"] == "query_result":
        return "result"
    if message["type"] == "done":
        return "output"
    operation = str((message.get("request") or message.get("write") or {}).get("op", "message"))
    return {"put": "checkpoint", "put_writes": "checkpoint", "store": "item"}.get(operation, operation)
