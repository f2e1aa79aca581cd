"""Serves the HTTP app of the project (`http.app` of langgraph.json), an ASGI application."""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from .app_routes import is_starlette, routes_of
from .auth_request import http_scope, to_raw_headers
from .connection import ServiceConnection, ServiceError
from .context import CURRENT_REQUEST
from .importing import format_traceback
from .lifespan import Lifespan
from .loopback import ServiceApp
from .messages import Message
from .users import User, credentials_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

# A response is produced this far ahead of its client.
MAX_BUFFERED_BYTES = 65_536
MAX_CHUNK_BYTES = 1_048_576

Report = Callable[[str, Message], None]


def as_asgi(exported: Any) -> AsgiApp:
    """Raises ValueError when the export is not an ASGI application."""
    reason = "the export is not an ASGI app: it must be callable with scope, receive and send"
    if not callable(exported) or isinstance(exported, type):
        raise ValueError(reason)
    try:
        inspect.signature(exported).bind(None, None, None)
    except TypeError as error:
        raise ValueError(reason) from error
    app: AsgiApp = exported
    return app


class AsgiServer:
    """Answers the queries of the service with the app."""

    def __init__(
        self,
        load: Callable[[], AsgiApp],
        connection: ServiceConnection,
        service: ServiceApp,
        report: Report,
    ) -> None:
        self._load = load
        self._connection = connection
        self._service = service
        self._report = report
        self._open: dict[int, _Exchange] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Future[AsgiApp] | None = None
        self._lifespan: Lifespan | None = None

    async def answer(self, query: Message) -> Any:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        app = await asyncio.shield(self._starting)
        if query["kind"] == "app_routes":
            return routes_of(app)
        request = query["request"]
        request_id = request["id"]
        if request["op"] == "fetch":
            return await self._fetch(app, query)
        exchange = self._open.get(request_id)
        if exchange is None:
            return None
        if request["op"] == "fetch_read":
            chunk = None
            try:
                chunk = await exchange.read()
            finally:
                # The end of the response, or an error.
                if chunk is None:
                    self._open.pop(request_id, None)
            return chunk
        exchange.disconnect()
        self._open.pop(request_id, None)
        return None

    async def stop(self, timeout: float) -> None:
        """Disconnects the clients, and executes the shutdown of the app's lifespan."""
        for exchange in self._open.values():
            exchange.disconnect()
        if self._lifespan is not None:
            await self._lifespan.stop(timeout)

    async def _start(self) -> AsgiApp:
        app = self._load()
        if is_starlette(app):
            # Requests that none of the app's routes answers continue with the routes of the service, behind the app's middleware.
            app.router.default = self._pass_on  # type: ignore[attr-defined]
        self._lifespan = Lifespan(app)
        await self._lifespan.start()
        return app

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._service.forward(scope, receive, send, is_next=True)

    async def _fetch(self, app: AsgiApp, query: Message) -> Message:
        request = query["request"]
        request_id = request["id"]
        url = query["origin"] + request["path"]
        scope = http_scope(url, request["method"], to_raw_headers(request["headers"]))
        if self._lifespan is not None:
            scope["state"] = dict(self._lifespan.state)
        if query.get("user"):
            user = User(orjson.loads(query["user"]))
            scope["user"] = user
            scope["auth"] = credentials_of(user)

        async def read_body() -> bytes | None:
            chunk: bytes | None = await self._connection.request(None, {"op": "app_body", "id": request_id})
            return chunk

        exchange = _Exchange(scope, read_body if query.get("has_body") else None)
        self._open[request_id] = exchange
        task = asyncio.get_running_loop().create_task(self._run(app, exchange, request_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        answer = await exchange.answer
        if not answer["has_body"]:
            self._open.pop(request_id, None)
            # The rest is not read, such as an endless stream in response to HEAD.
            if not exchange.is_complete:
                exchange.disconnect()
        return answer

    async def _run(self, app: AsgiApp, exchange: "_Exchange", request_id: int) -> None:
        CURRENT_REQUEST.set(request_id)
        scope = exchange.scope
        target = {"method": scope["method"], "path": scope["path"]}
        try:
            await app(scope, exchange.receive, exchange.send)
        except BaseException as error:
            # An app may also raise SystemExit. It must end neither the process nor another request.
            if not exchange.is_disconnected:
                self._report("HTTP app failed", {**target, "traceback": format_traceback(error)})
        else:
            if not exchange.is_complete and not exchange.is_disconnected:
                self._report("HTTP app ended without completing its response", target)
        exchange.end()


class _ClientDisconnectedError(OSError):
    """The client of the request has disconnected."""


class _Exchange:
    """A request, and its response, which the service reads in chunks."""

    def __init__(self, scope: Scope, read_body: Callable[[], Awaitable[bytes | None]] | None) -> None:
        self.scope = scope
        self.answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.is_complete = False
        self.is_disconnected = False
        self._read_body = read_body
        self._is_request_read = False
        self._start: Message | None = None
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._has_ended = False
        self._changed = asyncio.Condition()
        self._over = asyncio.Event()
        self._wakers: set[asyncio.Task[None]] = set()

    async def receive(self) -> Message:
        if self._is_request_read:
            await self._over.wait()
        elif self._read_body is None:
            self._is_request_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        else:
            try:
                chunk = await self._read_body()
                self._is_request_read = chunk is None
                return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}
            except ServiceError:
                # The client has disconnected, or its body is longer than the limit.
                self._is_request_read = True
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Raises OSError after the client has disconnected, RuntimeError when messages are in the wrong order."""
        if self.is_disconnected:
            raise _ClientDisconnectedError("The client has disconnected.")
        kind = message["type"]
        if kind == "http.response.start" and self._start is None:
            self._start = message
        elif kind == "http.response.body" and self._start is not None and not self.is_complete:
            await self._send_body(message.get("body") or b"", bool(message.get("more_body")))
        else:
            raise RuntimeError(f"Unexpected ASGI message {kind!r}.")

    async def _send_body(self, body: bytes, more_body: bool) -> None:
        start = self._start or {}
        has_body = (
            self.scope["method"] != "HEAD" and start["status"] not in (204, 205, 304) and (more_body or body != b"")
        )
        async with self._changed:
            if has_body and body:
                view = memoryview(bytes(body))
                self._chunks.extend(
                    bytes(view[at : at + MAX_CHUNK_BYTES]) for at in range(0, len(view), MAX_CHUNK_BYTES)
                )
                self._buffered += len(view)
            if not more_body:
                self.is_complete = True
                self._over.set()
            if not self.answer.done():
                headers = [
                    [_text(name), _text(value)]
                    for name, value in start.get("headers") or []
                    if _text(name) != "connection"
                ]
                self.answer.set_result({"status": int(start["status"]), "headers": headers, "has_body": has_body})
            self._changed.notify_all()
            # A body that is not read, such as that of a response to HEAD, waits for the disconnect.
            while more_body and (not has_body or self._buffered > MAX_BUFFERED_BYTES) and not self.is_disconnected:
                await self._changed.wait()

    async def read(self) -> bytes | None:
        """Returns a chunk of the response, or None at its end. Raises RuntimeError when the app has failed."""
        async with self._changed:
            while not self._chunks and not self.is_complete and not self._has_ended:
                await self._changed.wait()
            if self._chunks:
                chunk = self._take()
                self._changed.notify_all()
                return chunk
        if self.is_complete:
            return None
        raise RuntimeError("The HTTP app failed before its response was complete.")

    def _take(self) -> bytes:
        parts = [self._chunks.popleft()]
        size = len(parts[0])
        while self._chunks and size + len(self._chunks[0]) <= MAX_BUFFERED_BYTES:
            parts.append(self._chunks.popleft())
            size += len(parts[-1])
        self._buffered -= size
        return b"".join(parts)

    def disconnect(self) -> None:
        self.is_disconnected = True
        self._chunks.clear()
        self._buffered = 0
        self.end()

    def end(self) -> None:
        """Called when the app has returned or raised, or the client has disconnected."""
        self._has_ended = True
        self._over.set()
        if not self.answer.done():
            self._chunks.append(b"Internal Server Error")
            self.is_complete = True
            headers = [["content-type", "text/plain; charset=utf-8"]]
            self.answer.set_result({"status": 500, "headers": headers, "has_body": self.scope["method"] != "HEAD"})
        task = asyncio.get_running_loop().create_task(self._wake())
        self._wakers.add(task)
        task.add_done_callback(self._wakers.discard)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else bytes(value).decode("latin-1")
