"""The socket to the service: one JSON array of messages per line. A thread reads it even while the event loop is blocked."""

import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

import orjson

from .messages import Message

IDLE_SECONDS = 0.25
# A whole state, whose values were stored one by one.
MAX_RECEIVED_BYTES = 256 * 1024 * 1024


class FrameSocket:
    """Sends frames from any thread without waiting; its own thread sends what the socket does not accept at once."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._received = bytearray()
        self._wake, self._woken = socket.socketpair()
        sock.setblocking(False)
        self._woken.setblocking(False)

    def start(
        self,
        on_messages: Callable[[list[Message]], None],
        on_sent: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        """Starts the thread that calls the functions. It calls `on_idle` four times a second."""

        def run() -> None:
            self._run(on_messages, on_sent, on_idle)

        threading.Thread(target=run, name="threadmill-io", daemon=True).start()

    @property
    def unsent_bytes(self) -> int:
        return len(self._unsent)

    def send(self, frame: bytes) -> None:
        with self._lock:
            sent = 0
            if not self._unsent:
                try:
                    sent = self._sock.send(frame)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    return
            if sent < len(frame):
                self._unsent += memoryview(frame)[sent:]
                self._wake.send(b"w")

    def _run(
        self,
        on_messages: Callable[[list[Message]], None],
        on_sent: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._sock, selectors.EVENT_READ)
        selector.register(self._woken, selectors.EVENT_READ)
        idle_at = time.monotonic()
        while True:
            for key, mask in selector.select(IDLE_SECONDS):
                if key.fileobj is self._woken:
                    self._woken.recv(4096)
                    selector.modify(self._sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
                    continue
                if mask & selectors.EVENT_READ:
                    messages = self._read()
                    if messages:
                        on_messages(messages)
                if mask & selectors.EVENT_WRITE:
                    if self._send_rest():
                        selector.modify(self._sock, selectors.EVENT_READ)
                    on_sent()
            if time.monotonic() - idle_at >= IDLE_SECONDS:
                idle_at = time.monotonic()
                on_idle()

    def _read(self) -> list[Message]:
        try:
            chunk = self._sock.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if chunk == b"":
            end_at_once()
        received = self._received
        searched = len(received)
        received += chunk
        end = received.rfind(b"\n", searched)
        if end < 0:
            if len(received) > MAX_RECEIVED_BYTES:
                fail("The service sent a frame of more than 256 MB.")
            return []
        frames = bytes(received[:end])
        del received[: end + 1]
        try:
            return [message for line in frames.split(b"\n") for message in orjson.loads(line)]
        except ValueError:
            fail("The service sent a frame that is not JSON.")
            return []

    def _send_rest(self) -> bool:
        """Returns whether everything is sent."""
        with self._lock:
            try:
                sent = self._sock.send(self._unsent) if self._unsent else 0
            except BlockingIOError:
                return False
            except OSError:
                return True
            del self._unsent[:sent]
            return not self._unsent


def end_at_once() -> None:
    """Kills the process group: the service has ended, and no process of the host may outlive it."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def fail(reason: str) -> None:
    """Ends the process. The reason is part of the service's message about its exit."""
    print(reason, file=sys.__stderr__, flush=True)
    os._exit(1)
