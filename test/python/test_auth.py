"""The handlers of `auth.path` in a host."""

import json
from pathlib import Path
from typing import Any

import pytest

from service import Message, Service

MODULE = """
from langgraph_sdk import Auth

auth, bare = Auth(), Auth()

class HTTPException(Exception):
    def __init__(self):
        self.status_code, self.detail, self.headers = 418, "of a framework", None

@auth.authenticate
def authenticate(request, authorization, headers, query_params):
    if authorization == "framework":
        raise HTTPException
    if not authorization:
        raise Auth.exceptions.HTTPException(401, "Who?", {"X-Reason": "none", "Content-Length": "3"})
    return {"identity": authorization, "cookie": request.cookies.get("a"), "raw": headers[b"x-a"].decode("latin-1")}

@auth.on
async def all_events(ctx, value):
    value["seen"] = [ctx.resource, ctx.action, ctx.permissions, ctx.user["team"]]
    return {"owner": ctx.user.identity, "$or": [{"a": {"$contains": ["x"]}}, {"b": {"$eq": 1}}]}

@auth.on.threads.delete
async def delete(ctx, value):
    return value["answer"]

@auth.on(actions="read")
async def read(ctx, value):
    return True

@auth.on.store
async def store(ctx, value):
    assert isinstance(value["namespace"], tuple)
    value["namespace"] = (ctx.user.identity, *value["namespace"])
"""


async def query(service: Service, **fields: Any) -> Any:
    service._query_id += 1
    query_id = service._query_id
    service.send({"type": "query", "id": query_id, "query": fields})
    result = await service.wait_for(lambda message: message["type"] == "query_result" and message["id"] == query_id)
    return result["error"]["message"] if "error" in result else result.get("value")


async def load(service: Service, folder: Path, name: str = "auth") -> None:
    (folder / "auth.py").write_text(MODULE)
    module = {"file": str(folder / "auth.py"), "module": None, "export_name": name}
    loaded = await service.load(folder, {}, role="auth", auth=module)
    assert loaded["failures"] == {}


def authenticate(service: Service, **headers: str) -> Any:
    pairs = [["x-a", "é"], *([name, value] for name, value in headers.items())]
    return query(service, kind="authenticate", method="GET", url="http://localhost/a?b=1", headers=pairs)


def authorize(service: Service, event: str, value: Message) -> Any:
    user = json.dumps({"identity": "ada", "permissions": ["p"], "team": "blue"})
    return query(service, kind="authorize", event=event, user=user, value=json.dumps(value))


async def test_authenticate(bare_service: Service, tmp_path: Path) -> None:
    await load(bare_service, tmp_path)
    user = json.loads((await authenticate(bare_service, authorization="ada", cookie="a=1"))["user"])
    assert user["identity"] == user["display_name"] == "ada"
    assert user["is_authenticated"] is True and user["permissions"] == []
    assert user["cookie"] == "1" and user["raw"] == "é"
    assert (await authenticate(bare_service))["refused"] == {
        "status": 401,
        "message": "Who?",
        "headers": {"x-reason": "none"},
    }
    assert (await authenticate(bare_service, authorization="framework"))["refused"]["status"] == 418


async def test_authorize(bare_service: Service, tmp_path: Path) -> None:
    await load(bare_service, tmp_path)
    names = await query(bare_service, kind="auth_handlers")
    assert sorted(names) == ["*", "*:read", "store", "threads:delete"]
    created = await authorize(bare_service, "threads:create", {})
    assert json.loads(created["value"])["seen"] == ["threads", "create", ["p"], "blue"]
    either = [{"all": [{"all": [{"contains": {"a": ["x"]}}]}]}, {"all": [{"all": [{"contains": {"b": 1}}]}]}]
    assert created["filter"] == {"all": [{"all": [{"contains": {"owner": "ada"}}]}, {"any": either}]}
    assert await authorize(bare_service, "crons:read", {}) == {"value": "{}"}
    put = await authorize(bare_service, "store:put", {"namespace": ["a"]})
    assert json.loads(put["value"]) == {"namespace": ["ada", "a"]}


@pytest.mark.parametrize("answer", [1, "yes", [], {"a": {}}, {"a": []}, {"a": {"$in": [1]}}, {"$not": 1}, {"$or": 1}])
async def test_invalid_filters(bare_service: Service, tmp_path: Path, answer: Any) -> None:
    await load(bare_service, tmp_path)
    assert "invalid filter" in await authorize(bare_service, "threads:delete", {"answer": answer})
    refused = await authorize(bare_service, "threads:delete", {"answer": False})
    assert refused["refused"]["status"] == 403


async def test_unfinished_module(bare_service: Service, tmp_path: Path) -> None:
    await load(bare_service, tmp_path, "bare")
    for _ in range(2):
        assert "no authenticate handler" in await query(bare_service, kind="auth_handlers")
    assert any(log["message"] == "module failed to load" for log in bare_service.logs())
