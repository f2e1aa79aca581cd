"""The HTTP app of a project in a host."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from service import Message, Service

MODULE = """
import asyncio
import gc
from contextlib import asynccontextmanager
from langgraph_sdk import get_client
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute

client = get_client()
aborted = asyncio.Event()

@asynccontextmanager
async def lifespan(app):
    yield {"opened": "database"}
    print("lifespan shutdown")

async def size(request):
    return JSONResponse({"size": sum([len(chunk) async for chunk in request.stream()]), "state": request.state.opened})

async def me(request):
    return JSONResponse([request.user.identity, list(request.auth.scopes)])

async def endless(request):
    async def chunks():
        try:
            while True:
                yield "x" * 50_000
        finally:
            aborted.set()
    return StreamingResponse(chunks())

async def wait_for_abort(request):
    # As with uvicorn, Starlette leaves the generator of a response without a reader to the garbage collector.
    gc.collect()
    await aborted.wait()
    return JSONResponse("aborted")

async def responses(request):
    gc.collect()
    return JSONResponse(sum(type(found).__name__ == "_Exchange" for found in gc.get_objects()))

async def threads(request):
    return JSONResponse(await client.threads.search())

async def fails(request):
    raise ValueError("secret")

async def fails_later(request):
    async def chunks():
        yield "first"
        raise ValueError("secret")
    return StreamingResponse(chunks())

async def nothing(*_):
    pass

app = Starlette(
    lifespan=lifespan,
    routes=[
        *(Route(f"/{name.__name__}", name, methods=["GET", "POST"]) for name in (size, me, endless, wait_for_abort, responses, threads)),
        Route("/items/{number:int}/{rest:path}", fails), Route("/file.{name}", fails), Route("/fails", fails),
        Route("/fails_later", fails_later), WebSocketRoute("/socket", nothing), Mount("/sub", nothing),
    ],
)

async def plain(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    await send({"type": "http.response.start", "status": 200})

no_app = 1

async def environ(environ, start_response):
    pass
"""

ORIGIN = "http://localhost:8000"


class App:
    """The app of a host."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._ids = 0

    async def load(self, folder: Path, name: str = "app") -> None:
        (folder / "app.py").write_text(MODULE)
        module = {"file": str(folder / "app.py"), "module": None, "export_name": name}
        await self.service.load(folder, {}, role="app", app=module)

    async def query(self, **fields: Any) -> Message:
        self.service._query_id += 1
        query_id = self.service._query_id
        self.service.send({"type": "query", "id": query_id, "query": fields})
        return await self.service.wait_for(
            lambda message: message["type"] == "query_result" and message["id"] == query_id
        )

    async def start(self, method: str, path: str, **fields: Any) -> Message:
        self._ids += 1
        request = {"op": "fetch", "id": self._ids, "method": method, "path": path, "headers": []}
        return await self.query(kind="app", origin=ORIGIN, request=request, **fields)

    async def read(self) -> Message:
        return await self.query(kind="app", request={"op": "fetch_read", "id": self._ids})

    async def fetch(self, method: str, path: str, **fields: Any) -> tuple[int, bytes]:
        answer = (await self.start(method, path, **fields))["value"]
        body = b""
        while answer["has_body"] and "bytes" in (chunk := await self.read()):
            body += base64.b64decode(chunk["bytes"])
        return answer["status"], body


@pytest.fixture
def app(bare_service: Service) -> App:
    return App(bare_service)


async def test_requests_and_responses(app: App, tmp_path: Path) -> None:
    await app.load(tmp_path)
    app.service.bodies[1] = [b"x" * 10, b"y" * 5]
    assert await app.fetch("POST", "/size", has_body=True) == (200, b'{"size":15,"state":"database"}')
    user = json.dumps({"identity": "ada", "permissions": ["p"]})
    assert await app.fetch("GET", "/me", user=user) == (200, b'["ada",["p"]]')
    assert await app.fetch("HEAD", "/me", user=user) == (200, b"")
    assert await app.fetch("GET", "/fails") == (500, b"Internal Server Error")
    assert (await app.start("GET", "/fails_later"))["value"]["status"] == 200
    assert base64.b64decode((await app.read())["bytes"]) == b"first"
    assert "failed" in (await app.read())["error"]["message"]
    # Responses that have ended are not kept.
    assert await app.fetch("GET", "/responses") == (200, b"1")
    app.service.response = [b"[", b"]"]
    assert await app.fetch("GET", "/threads") == (200, b"[]")
    # No route of the app matches.
    assert await app.fetch("GET", "/a%2Fb?q=1") == (200, b"[]")
    sent = [message["request"] for message in app.service.requests if message["request"]["op"] == "app_fetch"]
    assert [(request["is_next"], request["request"]["path"]) for request in sent] == [
        (False, "/threads/search"),
        (True, "/a%2Fb?q=1"),
    ]


async def test_disconnects_and_shutdown(app: App, tmp_path: Path) -> None:
    await app.load(tmp_path)
    await app.start("GET", "/endless")
    assert len(base64.b64decode((await app.read())["bytes"])) >= 50_000
    await app.query(kind="app", request={"op": "fetch_cancel", "id": app._ids})
    assert await app.fetch("GET", "/wait_for_abort") == (200, b'"aborted"')
    # An endless response to HEAD ends, too: otherwise the shutdown would wait for it.
    assert await app.fetch("HEAD", "/endless") == (200, b"")
    app.service.send({"type": "end", "grace_ms": 2000})
    await app.service.wait_for(lambda message: message.get("message") == "lifespan shutdown")


async def test_routes(app: App, tmp_path: Path) -> None:
    await app.load(tmp_path)
    routes = (await app.query(kind="app_routes"))["value"]
    assert not any(route["is_middleware"] for route in routes)
    paths = [(route["method"], route["path"]) for route in routes if route["method"] != "HEAD"]
    assert paths[-7:] == [
        ("POST", "/threads"),
        ("GET", "/items/:p2/*"),
        ("GET", "/:p1"),
        ("GET", "/fails"),
        ("GET", "/fails_later"),
        ("ALL", "/sub"),
        ("ALL", "/sub/*"),
    ]


async def test_application_without_a_framework(app: App, tmp_path: Path) -> None:
    await app.load(tmp_path, "plain")
    assert "value" not in await app.query(kind="app_routes")
    assert await app.fetch("GET", "/") == (500, b"Internal Server Error")
    assert any("without completing" in log["message"] for log in app.service.logs())


@pytest.mark.parametrize("name", ["no_app", "environ"])
async def test_exports_that_are_no_apps(app: App, tmp_path: Path, name: str) -> None:
    await app.load(tmp_path, name)
    assert "is not an ASGI app" in (await app.query(kind="app_routes"))["error"]["message"]
