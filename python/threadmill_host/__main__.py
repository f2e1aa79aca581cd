"""The entry point of a host: `python -P -X utf8 -m threadmill_host`, with a socket to the service on descriptor 3."""

import asyncio
import importlib.metadata
import logging
import os
import platform
import socket
import sys
import time

from .process import prepare_process, restore_signals, run_until_stopped

prepare_process()

from .connection import ServiceConnection  # noqa: E402 - the process must end with the service also during the import of LangGraph
from .limits import LoopWatch  # noqa: E402
from .logs import HostLogs, LogHandler, LogSender  # noqa: E402
from .messages import PROTOCOL, RunKey  # noqa: E402
from .runtime import Runtime  # noqa: E402

SOCKET_DESCRIPTOR = 3

PACKAGES = ("langgraph", "langgraph-checkpoint", "langgraph-sdk", "langchain-core", "ormsgpack", "orjson")


def main() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    sock = socket.socket(fileno=SOCKET_DESCRIPTOR)
    # Subprocesses of the project must not keep the connection open.
    sock.set_inheritable(False)
    # A child made by fork has no I/O thread, so it must not use the socket.
    os.register_at_fork(after_in_child=lambda: _detach(sock))
    connection = ServiceConnection(sock, loop)
    sender = LogSender(connection)
    logs = HostLogs(sender)
    runtime = Runtime(connection, loop, logs, sender)
    loading_since: list[float] = []

    def blocked_since() -> float | None:
        return loading_since[0] if loading_since else connection.handed_at

    def report(message: str, run: RunKey | None) -> None:
        sender.send("warn", message, {}, run)
        connection.flush()

    watch = LoopWatch(connection.loop_thread, os.getcwd(), blocked_since, report)
    connection.start(runtime.receive, watch.check)
    connection.post(
        {
            "type": "hello",
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "packages": _versions(),
        }
    )
    run_until_stopped(loop, lambda: runtime.load_message is not None)
    assert runtime.load_message is not None
    watch.project_dir = runtime.load_message["setup"]["project_dir"]
    loading_since.append(time.monotonic())
    runtime.load(runtime.load_message)
    loading_since.clear()
    watch.is_loading = False
    connection.flush()
    run_until_stopped(loop, lambda: runtime.is_stopped)
    sys.exit(0)


def _detach(sock: socket.socket) -> None:
    """In a child made by fork, which has no I/O thread: restores the output, the loggers and the signals of a normal process."""
    sock.close()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, LogHandler)]:
        # Not removeHandler: another thread may have held the lock of the module at the fork.
        root.handlers[root.handlers.index(handler)] = logging.StreamHandler(sys.stderr)
    restore_signals()


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
