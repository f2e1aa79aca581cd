import asyncio
import itertools
import os
from typing import Any

from langgraph_sdk import Auth

auth = Auth()
_calls = itertools.count(1)

Value = dict[str, Any]
Context = Auth.types.AuthContext


@auth.authenticate
async def authenticate(authorization: str | None, path: str) -> Any:
    """`Bearer <name>` is the user; some names stand for mistakes of a handler."""
    name = authorization.removeprefix("Bearer ") if authorization else ""
    call = next(_calls)
    match name:
        case "":
            raise Auth.exceptions.HTTPException(401, "Who are you?", {"x-reason": "no token"})
        case "poor":
            raise Auth.exceptions.HTTPException(402, "Pay first")
        case "throws":
            raise TypeError("internal detail")
        case "nobody":
            return None
        case "unnamed":
            return {"identity": "", "permissions": []}
        case "waits":
            await asyncio.Event().wait()
        case "blocks":
            while True:
                pass
        case "exits":
            os._exit(3)
    permissions = ["admin", "threads:write"]
    return {"identity": name, "permissions": permissions, "team": "blue", "nth_call": call, "path": path}


@auth.on
async def own(ctx: Context, value: Value) -> Any:
    owner = {"owner": ctx.user.identity}
    value["metadata"] = {**(value.get("metadata") or {}), **owner}
    return owner


@auth.on.threads.read
async def read(ctx: Context, value: Value) -> Any:
    readers = {"readers": {"$contains": ctx.user.identity}}
    return {"$or": [{"owner": ctx.user.identity}, readers, {"$and": [{"public": {"$eq": "yes"}}]}]}


@auth.on.threads.create_run
async def create_run(ctx: Context, value: Value) -> Any:
    if ctx.user.identity == "careful" and value.get("kwargs", {}).get("command"):
        raise Auth.exceptions.HTTPException(403, "No commands")
    seen = {"owner": ctx.user.identity, "assistant_seen": value.get("assistant_id")}
    value["metadata"] = {**(value.get("metadata") or {}), **seen}
    return {"owner": ctx.user.identity}


@auth.on.threads.delete
async def delete(ctx: Context, value: Value) -> Any:
    return False if ctx.user.identity == "guest" else {"owner": ctx.user.identity}


@auth.on.crons.search
async def search_crons(ctx: Context, value: Value) -> Any:
    return {"owner": object() if ctx.user.identity == "sloppy" else ctx.user.identity}


@auth.on.crons.update
async def update_crons(ctx: Context, value: Value) -> Any:
    return {"$or": [{"owner": ctx.user.identity}, {"editors": {"$contains": ctx.user.identity}}]}


@auth.on.assistants.search
async def search_assistants(ctx: Context, value: Value) -> Any:
    return {"owner": ctx.user.identity}


@auth.on.store
async def store(ctx: Context, value: Value) -> None:
    value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
