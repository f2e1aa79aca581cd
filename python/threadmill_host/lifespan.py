"""The lifespan of an ASGI application."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .messages import Message


class Lifespan:
    """Executes the startup and the shutdown of an app. An app may not support them."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.state: dict[str, Any] = {}
        self._app = app
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._started: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises RuntimeError when the startup fails."""
        self._events.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.get_running_loop().create_task(self._run())
        failure = await self._started
        if failure is not None:
            raise RuntimeError(f"its lifespan startup failed: {failure}")

    async def stop(self, timeout: float) -> None:
        """Waits at most this long for the shutdown."""
        if self._task is not None and not self._task.done():
            self._events.put_nowait({"type": "lifespan.shutdown"})
            await asyncio.wait([self._task], timeout=timeout)

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        reason: list[str] = []

        async def send(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete" and not self._started.done():
                self._started.set_result(None)
            elif message["type"] == "lifespan.startup.failed":
                # Starlette's message is the whole traceback.
                reason.append(str(message.get("message") or "no reason given").strip().split("\n")[-1])

        try:
            await self._app(scope, self._events.get, send)
        except BaseException as error:
            if reason:
                reason[0] = f"{type(error).__name__}: {error}"
        # An app that raises without a message, or returns, does not support lifespans.
        if not self._started.done():
            self._started.set_result(reason[0] if reason else None)
