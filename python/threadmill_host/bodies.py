"""The executor for synchronous nodes, which counts the calls of each run that have not ended."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .context import CURRENT_RUN
from .limits import MemoryLimit
from .messages import RunKey

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREADS = 200


class BodyExecutor(concurrent.futures.ThreadPoolExecutor):
    """A thread cannot be stopped: a call may continue after its run was cancelled."""

    def __init__(self, jobs: int, loop: asyncio.AbstractEventLoop, memory: MemoryLimit) -> None:
        super().__init__(max_workers=min(MAX_THREADS, max(32, 2 * jobs)), thread_name_prefix="threadmill-node")
        self._loop = loop
        self._memory = memory
        # Used in the event loop only.
        self._running: dict[RunKey, int] = {}
        self._ended: dict[RunKey, asyncio.Future[None]] = {}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        self._memory.allow_threads(len(self._threads) + 1)
        future = super().submit(fn, *args, **kwargs)
        run = CURRENT_RUN.get()
        if run is not None:
            key = run.key
            self._running[key] = self._running.get(key, 0) + 1
            future.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._on_end, key))
        return future

    def _on_end(self, key: RunKey) -> None:
        left = self._running.get(key, 0) - 1
        if left > 0:
            self._running[key] = left
            return
        self._running.pop(key, None)
        ended = self._ended.pop(key, None)
        if ended is not None and not ended.done():
            ended.set_result(None)

    async def wait_for(self, key: RunKey) -> None:
        """Waits until all calls of the run have ended."""
        while key in self._running:
            ended: asyncio.Future[Any] = self._ended.setdefault(key, self._loop.create_future())
            await ended

    def has_running(self) -> bool:
        return bool(self._running)
