"""The process of a host. It ends when the service ends; exceptions raised by nodes do not end it."""

import asyncio
import ctypes
import faulthandler
import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .logs import LogSender

_PR_SET_PDEATHSIG = 1

# Sent to all processes of the service by a terminal (Ctrl-C) or by systemd.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def prepare_process() -> None:
    """Makes the process end with the service even if a call holds the GIL, and writes the trace of a crash to stderr."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The service handles them, and kills the host when its runs have ended. Not SIG_IGN, which programs that a node starts would inherit.
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    faulthandler.enable(file=2)


def restore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def wait_for_debugger(sender: "LogSender") -> None:
    """Waits for a debugger at the port that THREADMILL_PYTHON_DEBUGPY names, in the first host that uses the port."""
    port = os.environ.get("THREADMILL_PYTHON_DEBUGPY")
    if not port:
        return
    try:
        debugpy = importlib.import_module("debugpy")
        debugpy.listen(int(port))
    except (ImportError, RuntimeError, OSError, ValueError) as error:
        sender.send("warn", "debugpy does not wait for a debugger", {"port": port, "reason": str(error)})
        return
    sender.send("info", "waiting for a debugger", {"port": port})
    debugpy.wait_for_client()


def run_until_stopped(loop: asyncio.AbstractEventLoop, is_stopped: Callable[[], bool]) -> None:
    """Runs the event loop, and again after a node raises SystemExit or KeyboardInterrupt, which its run gets as an error."""
    while not is_stopped():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue
