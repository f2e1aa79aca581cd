"""Answers queries about graphs and the states of threads."""

import base64
from collections.abc import Mapping
from typing import Any

from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot, StateUpdate

from .asgi import AsgiServer
from .commands import to_command
from .load import LoadedGraphs
from .messages import Message
from .outcome import describe_error
from .schemas import schemas_of
from .scope import SCOPE, Scope
from .state import select_state, summarize, to_configurable, to_thread_state
from .users import with_user
from .wire import to_wire

Graph = Pregel[Any, Any, Any, Any]

# A history page ends with the state that makes the page longer than this.
PAGE_CHARS = 8_000_000
# A page of large states is read in parts of 1 to 8 states.
MAX_HISTORY_PART = 8

_ENCRYPTION = frozenset(["encryption_handlers", "encryption_context", "encrypt", "decrypt"])

_ACCESS = {
    "state": "threads.read",
    "summary": "threads.read",
    "history": "threads.read",
    "update": "threads.update",
    "drawing": "assistants.read",
    "schemas": "assistants.read",
    "subgraphs": "assistants.read",
}


async def run_query(message: Message, graphs: LoadedGraphs, app: AsgiServer) -> Message:
    """Never raises: an error is returned as a result."""
    result = {"type": "query_result", "id": message["id"]}
    try:
        query = message["query"]
        value = await (app.answer(query) if query["kind"] in ("app", "app_routes") else _result_of(query, graphs))
        if isinstance(value, bytes):
            return {**result, "bytes": base64.b64encode(value).decode()}
        return result if value is None else {**result, "value": value}
    except Exception as error:
        described = describe_error(error)
        return {**result, "error": {"name": described["error"], "message": described["message"]}}


async def _result_of(query: Message, graphs: LoadedGraphs) -> Any:
    kind = query["kind"]
    if kind == "embed":
        return await graphs.embeddings().embed(query)
    if kind in ("auth_handlers", "authenticate", "authorize"):
        return await graphs.auth().answer(query)
    if kind in _ENCRYPTION:
        return await graphs.encryption().answer(query)
    if kind not in _ACCESS:
        raise ValueError(f"Python hosts do not support queries of the kind {kind}.")
    in_use = query["graph"]
    config = with_user(in_use.get("config") or {})
    async with graphs.use(in_use["graph_id"], config, _ACCESS[kind], context=in_use.get("context")) as graph:
        match kind:
            case "state":
                checkpoint = _config(to_configurable(query["checkpoint"]), Scope(metadata={}))
                snapshot = await graph.aget_state(checkpoint, subgraphs=bool(query.get("subgraphs")))
                return _state_text(snapshot, query.get("select"))
            case "summary":
                scope = Scope(metadata={}, without=query.get("without"))
                return summarize(await graph.aget_state(_config(to_configurable(query["checkpoint"]), scope)))
            case "history":
                return await _history(graph, query)
            case "update":
                return await _stage_update(graph, query)
            case "drawing":
                return to_wire((await graph.aget_graph(xray=query["xray"])).to_json())
            case "schemas":
                return schemas_of(graph)
            case _:
                found = graph.aget_subgraphs(namespace=query.get("namespace"), recurse=bool(query.get("recurse")))
                return {name: schemas_of(subgraph) async for name, subgraph in found if isinstance(subgraph, Pregel)}


def _config(configurable: Mapping[str, Any], scope: Scope) -> Any:
    return {"configurable": {**configurable, SCOPE: scope}}


def _state_text(snapshot: StateSnapshot, select: list[str] | None) -> str:
    return to_wire(select_state(to_thread_state(snapshot), select))


async def _history(graph: Graph, query: Message) -> Message:
    """LangGraph reads all states of a request before it returns the first one, so a page is read in parts."""
    states: list[str] = []
    chars = 0
    before = query.get("before")
    size = 1
    while (left := query["limit"] - len(states)) > 0:
        wanted = min(left, size)
        size = min(2 * size, MAX_HISTORY_PART)
        snapshots = graph.aget_state_history(
            _config(to_configurable(query["checkpoint"]), Scope(metadata={})),
            filter=query.get("metadata"),
            before=None if before is None else {"configurable": {"checkpoint_id": before}},
            limit=wanted,
        )
        found = [snapshot async for snapshot in snapshots]
        for snapshot in found:
            text = _state_text(snapshot, query.get("select"))
            states.append(text)
            chars += len(text)
            before = snapshot.config.get("configurable", {}).get("checkpoint_id")
            if chars > PAGE_CHARS and len(states) < query["limit"]:
                return {"states": ",".join(states), "count": len(states), "before": before}
        if len(found) < wanted:
            break
    return {"states": ",".join(states), "count": len(states)}


async def _stage_update(graph: Graph, query: Message) -> Message:
    """Computes an update. The service stores it in one transaction if the thread is still idle."""
    thread_id = query["checkpoint"]["thread_id"]
    in_use = query["graph"]
    puts: list[Message] = []
    writes: list[Message] = []
    metadata = {
        **((in_use.get("config") or {}).get("metadata") or {}),
        "thread_id": thread_id,
        "graph_id": in_use["graph_id"],
    }
    scope = Scope(metadata=metadata, staged=(puts, writes))
    head = await graph.aget_state(_config({"thread_id": thread_id}, Scope(metadata={})))
    current: Message = to_configurable(query["checkpoint"])
    for updates in query["supersteps"]:
        config = await graph.abulk_update_state(
            _config(current, scope), [[_to_state_update(update) for update in updates]]
        )
        current = {**current, **config.get("configurable", {})}
    # The newest state, as it will be once the update is stored, including pending writes.
    state = summarize(await graph.aget_state(_config({"thread_id": thread_id}, scope)))
    checkpoint = {
        "thread_id": thread_id,
        "checkpoint_ns": current.get("checkpoint_ns") or "",
        "checkpoint_id": current.get("checkpoint_id"),
    }
    update: Message = {"checkpoint": checkpoint, "puts": puts, "writes": writes, "state": state}
    base = head.config.get("configurable", {}).get("checkpoint_id")
    return update if base is None else {**update, "base": base}


def _to_state_update(update: Message) -> StateUpdate:
    command = update.get("command")
    values: Any = to_command(command) if command else update.get("values")
    return StateUpdate(values=values, as_node=update.get("as_node"))
