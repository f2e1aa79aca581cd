"""The process: it ends with the service, and exceptions of nodes do not end it."""

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


def prepare_process() -> None:
    """Ends the process with the service also when a call holds the GIL, and writes the trace of a crash to stderr."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A Ctrl-C in the terminal is the service's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(file=2)


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
    """Runs the event loop. SystemExit and KeyboardInterrupt of a node leave it; its run gets them as an error."""
    while not is_stopped():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue
