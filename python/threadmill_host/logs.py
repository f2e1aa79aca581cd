"""Sends what the project prints and logs to the service, with the run that it belongs to."""

import io
import logging
import sys
import threading
import time
from typing import Any, TextIO

from .connection import ServiceConnection
from .context import CURRENT_RUN
from .messages import RunKey
from .wire import clean, text_of, to_wire

MAX_LINE_CHARS = 16_000
MAX_LINES_PER_SECOND = 1_000


class LogSender:
    """Sends log messages. Lines above the limits are cut or counted."""

    def __init__(self, connection: ServiceConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._second = 0
        self._sent = 0
        self._dropped = 0

    def send(self, level: str, message: str, fields: dict[str, Any], run: RunKey | None = None) -> None:
        if run is None:
            current = CURRENT_RUN.get()
            run = current.key if current else None
        with self._lock:
            second = int(time.monotonic())
            dropped = 0
            if second != self._second:
                self._second, self._sent = second, 0
                dropped, self._dropped = self._dropped, 0
            self._sent += 1
            if self._sent > MAX_LINES_PER_SECOND:
                self._dropped += 1
                return
        if dropped:
            self._post(
                "warn",
                f"{dropped} log lines were dropped: at most {MAX_LINES_PER_SECOND} are kept per second",
                {},
                None,
            )
        self._post(level, message, fields, run)

    def _post(self, level: str, message: str, fields: dict[str, Any], run: RunKey | None) -> None:
        text = clean(message)
        if len(text) > MAX_LINE_CHARS:
            text = text[:MAX_LINE_CHARS] + " ... (cut)"
        entry = {"type": "log", "level": level, "message": text, "fields": text_of(fields)}
        if run is not None:
            entry["run"] = run.fields()  # type: ignore[assignment]
        try:
            self._connection.post(entry)
        except ValueError:
            self._connection.post({**entry, "fields": to_wire({})})


class LogStream(io.TextIOBase):
    """Replaces `sys.stdout` or `sys.stderr`. Subprocesses and C code write to the original descriptors."""

    def __init__(self, sender: LogSender, original: TextIO, name: str, level: str) -> None:
        super().__init__()
        self._sender = sender
        self._original = original
        self._name = name
        self._level = level
        self._lock = threading.RLock()
        # By run, because runs write alternately.
        self._partial: dict[RunKey | None, str] = {}

    @property
    def name(self) -> str:
        return f"<{self._name}>"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "replace"

    @property
    def buffer(self) -> Any:
        return self._original.buffer

    def fileno(self) -> int:
        return self._original.fileno()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        current = CURRENT_RUN.get()
        key = current.key if current else None
        with self._lock:
            *lines, rest = (self._partial.pop(key, "") + text).split("\n")
            if len(rest) > MAX_LINE_CHARS:
                lines, rest = [*lines, rest], ""
            if rest:
                self._partial[key] = rest
        for line in lines:
            if line.strip():
                self._sender.send(self._level, line.rstrip("\r"), {"stream": self._name}, key)
        return len(text)

    def flush(self) -> None:
        """Writes what was written to `buffer`. Lines are sent when they are complete."""
        self._original.flush()

    def reconfigure(self, **_: Any) -> None:
        """Has no effect: lines are sent in UTF-8."""

    def flush_run(self, key: RunKey | None) -> None:
        """Sends the unfinished line of a run."""
        with self._lock:
            rest = self._partial.pop(key, "")
        if rest.strip():
            self._sender.send(self._level, rest, {"stream": self._name}, key)


def level_of(number: int) -> str:
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warn"
    return "info" if number >= logging.INFO else "debug"


class LogHandler(logging.Handler):
    """Sends log records with their logger and run."""

    def __init__(self, sender: LogSender) -> None:
        super().__init__()
        self._sender = sender

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields: dict[str, Any] = {"logger": record.name}
            if record.exc_info and record.exc_info[0] is not None:
                fields["traceback"] = logging.Formatter().formatException(record.exc_info)[-8_000:]
            self._sender.send(level_of(record.levelno), record.getMessage(), fields)
        except Exception:
            self.handleError(record)


class HostLogs:
    """The replaced streams and the handler of the root logger."""

    def __init__(self, sender: LogSender) -> None:
        self._sender = sender
        self._streams = [
            LogStream(sender, sys.stdout, "stdout", "info"),
            LogStream(sender, sys.stderr, "stderr", "warn"),
        ]
        sys.stdout, sys.stderr = self._streams

    def add_handler(self) -> None:
        """Adds a handler unless the project has configured one. Called after its modules are loaded."""
        root = logging.getLogger()
        if root.handlers:
            return
        root.addHandler(LogHandler(self._sender))
        if root.level == logging.WARNING:
            root.setLevel(logging.INFO)

    def flush_run(self, key: RunKey | None) -> None:
        for stream in self._streams:
            stream.flush_run(key)
