"""Requests of the project's code to the service, without a socket: what `get_client()` of langgraph_sdk without a URL uses.

The SDK imports `langgraph_api.server` and `langgraph_api.asgi_transport` for these. The modules here have only the two names that it uses.
"""

import asyncio
import base64
import itertools
import sys
import types
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote, unquote

import httpx

from .connection import ServiceConnection
from .context import CURRENT_REQUEST, CURRENT_RUN
from .messages import Message, RunKey

OUTSIDE = (
    "A client without a URL works only during a run or a request to the HTTP app. Elsewhere, pass the URL of the server "
    "to the client."
)
Headers = list[tuple[str, str]]


class ServiceResponse:
    """The response of the service, whose body is read in chunks."""

    def __init__(self, service: "ServiceApp", run: RunKey | None, fetch_id: int, answer: Message) -> None:
        self.status: int = answer["status"]
        self.headers: Headers = [(name, value) for name, value in answer["headers"]]
        self._service = service
        self._run = run
        self._id = fetch_id
        self._is_open: bool = answer["has_body"]

    async def chunks(self) -> AsyncIterator[bytes]:
        while self._is_open:
            chunk: bytes | None = await self._service.request(self._run, {"op": "fetch_read", "id": self._id})
            if chunk is None:
                self._is_open = False
            else:
                yield chunk

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._service.cancel(self._run, self._id)


class ServiceApp:
    """The service as an ASGI application, on behalf of the current run or of the current request to the HTTP app."""

    def __init__(self, connection: ServiceConnection) -> None:
        self._connection = connection
        self._ids = itertools.count(1)

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await self.forward(scope, receive, send)

    async def forward(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
        is_next: bool = False,
    ) -> None:
        """Answers a request with the response of the service. `is_next`: it is the request of the HTTP app's client itself."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003, "reason": ""})
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"The service does not support requests of the type {scope['type']}.")
        body = bytearray()
        more_body = True
        while more_body:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body") or b""
            more_body = bool(message.get("more_body"))
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        response = await self.fetch(scope["method"], _target_of(scope), headers, bytes(body), is_next=is_next)
        try:
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
            await send({"type": "http.response.start", "status": response.status, "headers": raw})
            async for chunk in response.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.close()

    async def fetch(
        self, method: str, path: str, headers: Headers, body: bytes, *, is_next: bool = False
    ) -> ServiceResponse:
        """Raises RuntimeError outside of a run and of a request to the HTTP app."""
        current = CURRENT_RUN.get()
        app_request = CURRENT_REQUEST.get()
        if current is None and app_request is None:
            raise RuntimeError(OUTSIDE)
        run = None if current is None else current.key
        fetch_id = next(self._ids)
        fetch: Message = {"op": "fetch", "id": fetch_id, "method": method, "path": path, "headers": headers}
        if body:
            fetch["body"] = base64.b64encode(body).decode()
        if run is None:
            fetch = {"op": "app_fetch", "id": app_request, "is_next": is_next, "request": fetch}
        try:
            answer = await self.request(run, fetch)
        except asyncio.CancelledError:
            self.cancel(run, fetch_id)
            raise
        return ServiceResponse(self, run, fetch_id, answer)

    async def request(self, run: RunKey | None, message: Message) -> Any:
        """A synchronous node may run an event loop of its own, in a thread."""
        if asyncio.get_running_loop() is self._connection.loop:
            return await self._connection.request(run, message)
        return await asyncio.to_thread(self._connection.request_sync, run, message)

    def cancel(self, run: RunKey | None, fetch_id: int) -> None:
        """Does not wait, because the caller may have been cancelled."""
        work = self._connection.request(run, {"op": "fetch_cancel", "id": fetch_id})
        future = asyncio.run_coroutine_threadsafe(work, self._connection.loop)
        # The run or the request has ended, which has cancelled it, too.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _target_of(scope: MutableMapping[str, Any]) -> str:
    path = scope["path"]
    raw = (scope.get("raw_path") or b"").decode("latin-1")
    # A middleware may have changed the path. The raw one keeps encoded slashes.
    target = raw if unquote(raw) == path else quote(path, safe="/:@!$&'()*+,;=~-._")
    query = scope.get("query_string") or b""
    return f"{target}?{query.decode('latin-1')}" if query else target


class _Stream(httpx.AsyncByteStream):
    def __init__(self, response: ServiceResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            yield chunk

    async def aclose(self) -> None:
        await self._response.close()


def install(service: ServiceApp) -> None:
    """Makes clients of langgraph_sdk without a URL use the service. An installed server of that name is not used."""

    class ASGITransport(httpx.AsyncBaseTransport):
        """Unlike httpx's own transport, it streams responses."""

        def __init__(self, app: Any = None, *_: Any, **__: Any) -> None:
            self.app = app

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.headers.raw]
            path = request.url.raw_path.decode("latin-1")
            response = await service.fetch(request.method, path, headers, await request.aread())
            return httpx.Response(response.status, headers=response.headers, stream=_Stream(response))

    package = types.ModuleType("langgraph_api", "The names that langgraph_sdk uses for a client without a URL.")
    package.__path__ = []
    server = types.ModuleType("langgraph_api.server")
    transport = types.ModuleType("langgraph_api.asgi_transport")
    vars(server)["app"] = service
    vars(transport)["ASGITransport"] = ASGITransport
    vars(package).update(server=server, asgi_transport=transport)
    for module in (package, server, transport):
        sys.modules[module.__name__] = module
