"""The memory limit of the process, and reports of a blocked event loop."""

import os
import resource
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType

from .messages import RunKey
from .scope import SCOPE, Scope

BLOCKED_SECONDS = 1.0
FIRST_LOADING_REPORT = 10.0
NEXT_LOADING_REPORT = 30.0


class MemoryLimit:
    """RLIMIT_DATA: an allocation beyond it raises MemoryError in a node, and the host survives.

    RLIMIT_AS would also count memory that libraries only reserve. The limit leaves room for the stacks of the node threads.
    """

    def __init__(self, megabytes: int | None) -> None:
        self._bytes = None if megabytes is None else megabytes * 1024 * 1024
        stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
        self._stack = 8 * 1024 * 1024 if stack in (resource.RLIM_INFINITY, -1) else min(stack, 64 * 1024 * 1024)
        self._threads = 0
        self._lock = threading.Lock()
        self.allow_threads(0)

    def allow_threads(self, threads: int) -> None:
        if self._bytes is None or (threads <= self._threads and self._threads > 0):
            return
        with self._lock:
            self._threads = threads + 4
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            limit = self._bytes + self._threads * self._stack
            if hard != resource.RLIM_INFINITY:
                limit = min(limit, hard)
            try:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
            except (ValueError, OSError):
                self._bytes = None


def resident_megabytes() -> int:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() // (1024 * 1024)
    except OSError:
        # In bytes, on macOS; the peak.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024)


class LoopWatch:
    """Reports once that the event loop has been blocked for a second, or which code a long import is executing.

    Runs in the I/O thread.
    """

    def __init__(
        self,
        loop_thread: int,
        project_dir: str,
        blocked_since: Callable[[], float | None],
        report: Callable[[str, RunKey | None], None],
    ) -> None:
        self._loop_thread = loop_thread
        self.project_dir = project_dir
        self._blocked_since = blocked_since
        self._report = report
        self._reported: float | None = None
        self._loading_limit = FIRST_LOADING_REPORT
        self._libraries = tuple(
            path for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_paths().get(name))
        )
        self.is_loading = True

    def check(self) -> None:
        since = self._blocked_since()
        limit = self._loading_limit if self.is_loading else BLOCKED_SECONDS
        if since is None or since == self._reported or time.monotonic() - since < limit:
            return
        if self.is_loading:
            self._loading_limit += NEXT_LOADING_REPORT
        else:
            self._reported = since
        frame = sys._current_frames().get(self._loop_thread)
        code, line, run = self._find(frame)
        if self.is_loading:
            self._report(f"The graphs are still being loaded; {self._place(code, line)} is executing", None)
            return
        where = f"{self._place(code, line)} in {code.co_name}" if code else "an unknown function"
        self._report(f"The event loop is blocked by {where}; use an async client or await asyncio.to_thread(...)", run)

    def _find(self, frame: FrameType | None) -> tuple[CodeType | None, int, RunKey | None]:
        """Returns the innermost code outside of libraries, and the run that it belongs to."""
        found: tuple[CodeType | None, int] = (None, 0)
        run: RunKey | None = None
        own = os.path.dirname(__file__)
        while frame is not None:
            file = frame.f_code.co_filename
            is_library = file.startswith((*self._libraries, own, "<frozen")) or "site-packages" in file
            if found[0] is None and not is_library:
                found = (frame.f_code, frame.f_lineno)
            if run is None and "site-packages" in file:
                run = _run_of(frame)
            frame = frame.f_back
        return (*found, run)

    def _place(self, code: CodeType | None, line: int) -> str:
        if code is None:
            return "an unknown function"
        file = code.co_filename
        inside = file.startswith(self.project_dir + os.sep)
        return f"{os.path.relpath(file, self.project_dir) if inside else os.path.basename(file)}:{line}"


def _run_of(frame: FrameType) -> RunKey | None:
    config = frame.f_locals.get("config") if "config" in frame.f_code.co_varnames else None
    configurable = config.get("configurable") if isinstance(config, dict) else None
    scope = configurable.get(SCOPE) if isinstance(configurable, dict) else None
    return scope.run if isinstance(scope, Scope) else None
