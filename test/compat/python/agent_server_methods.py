"""Calls every public method of the official Python clients of the agent server with real arguments.

The argument is the URL of a service; see method_calls.py for the output. Calls of options are named by their method and the option.
"""

import asyncio
import inspect
import json
import sys
import warnings
from typing import Any

import httpx
from checks import unique
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client
from method_calls import Call, World, call_all, keep, settle

INPUT = {"topic": "bees"}


def methods_of(value: Any) -> list[str]:
    """The names of the public methods that a class defines, without those of its bases."""
    return [name for name, member in vars(type(value)).items() if not name.startswith("_") and inspect.isfunction(member)]


def names_in(client: Any) -> list[str]:
    """The names of the public methods, with those of the resources."""
    resources = {name: value for name, value in vars(client).items() if not name.startswith("_")}
    return methods_of(client) + [f"{name}.{method}" for name, value in resources.items() for method in methods_of(value)]


def field_names(content: bytes) -> list[str]:
    body = json.loads(content) if content else {}
    records = body if isinstance(body, list) else [body]
    return sorted({name for record in records if isinstance(record, dict) for name in record})


def record(request: httpx.Request, sent: list[dict]) -> None:
    query = list(request.url.params.keys())
    path = request.url.path
    sent.append({"method": request.method.lower(), "path": path, "query": query, "body": field_names(request.read())})


async def first(stream: Any) -> Any:
    """The first event of a stream that stays open."""
    if inspect.isawaitable(stream):
        stream = await stream
    if hasattr(stream, "__aiter__"):
        async for event in stream:
            await stream.aclose()
            return event
    event = next(stream)
    stream.close()
    return event


async def set_up(client: Any) -> World:
    metadata = {"key": unique()}
    thread = await settle(client.threads.create(metadata=metadata))
    thread_id = thread["thread_id"]
    run = await settle(client.runs.create(thread_id, "agent", input=INPUT))
    await settle(client.runs.join(thread_id, run["run_id"]))
    return {"metadata": metadata, "thread_id": thread_id, "run_id": run["run_id"], "namespace": ["users", metadata["key"]]}


async def cancel(client: Any, w: World) -> None:
    run = await active_run(client, w)
    await settle(client.runs.cancel(run["thread_id"], run["run_id"], wait=True, action="interrupt"))


async def cancel_many(client: Any, w: World) -> None:
    run = await active_run(client, w)
    await settle(client.runs.cancel_many(thread_id=run["thread_id"], run_ids=[run["run_id"]], action="rollback"))


async def active_run(client: Any, w: World) -> Any:
    """A run that does not end by itself."""
    thread = await settle(client.threads.create(metadata=w["metadata"]))
    return await settle(client.runs.create(thread["thread_id"], "waiting", input={}))


async def thread_stream(client: Any, w: World) -> None:
    stream = client.threads.stream(assistant_id="agent")
    if hasattr(stream, "__aenter__"):
        async with stream:
            await stream.run.start(input=INPUT)
    else:
        with stream:
            stream.run.start(input=INPUT)


# Every option of a run, except those that exclude each other.
RUN_OPTIONS: dict[str, Any] = {
    "input": INPUT,
    "config": {"tags": ["a"]},
    "context": {"tone": "kindly"},
    "checkpoint_during": True,
    "interrupt_before": ["finish"],
    "interrupt_after": ["finish"],
    "webhook": "http://127.0.0.1:9/hook",
    "multitask_strategy": "enqueue",
    "if_not_exists": "create",
    "on_completion": "keep",
    "after_seconds": 0,
    "langsmith_tracing": {"project_name": "other"},
    "durability": "exit",
    "strict_resume": True,
}
STREAMED = {
    "stream_mode": ["values", "updates", "messages-tuple", "custom", "debug"],
    "stream_subgraphs": True,
    "stream_resumable": True,
}
SCHEDULE: dict[str, Any] = {
    "schedule": "0 9 * * 1-5",
    "timezone": "Europe/Berlin",
    "end_time": None,
    "enabled": False,
    "input": INPUT,
    "config": {"tags": ["a"]},
    "context": {"tone": "kindly"},
    "webhook": "http://127.0.0.1:9/hook",
    "interrupt_before": ["finish"],
    "interrupt_after": ["finish"],
    "stream_mode": ["values"],
    "stream_subgraphs": True,
    "stream_resumable": True,
    "durability": "async",
}
CREATED: dict[str, Any] = {"multitask_strategy": "enqueue", "checkpoint_during": True}
PAGE = {"limit": 5, "offset": 0}

# Methods that both clients have. The order matters: records are created before they are read and deleted.
CALLS: dict[str, Call] = {
    "assistants.create": keep(
        "assistant",
        lambda c, w: c.assistants.create(
            "agent",
            assistant_id=unique(),
            if_exists="do_nothing",
            name="One",
            description="The first",
            metadata=w["metadata"],
            context={"tone": "plainly"},
        ),
    ),
    "assistants.get": lambda c, w: c.assistants.get(w["assistant"]["assistant_id"]),
    "assistants.update": lambda c, w: c.assistants.update(
        w["assistant"]["assistant_id"],
        graph_id="agent",
        name="Two",
        description="The second",
        metadata={"changed": True},
        config={"tags": ["a"], "recursion_limit": 9, "configurable": {"color": "red"}},
    ),
    "assistants.get_graph": lambda c, w: c.assistants.get_graph(w["assistant"]["assistant_id"], xray=True),
    "assistants.get_schemas": lambda c, w: c.assistants.get_schemas(w["assistant"]["assistant_id"]),
    "assistants.get_subgraphs": lambda c, w: c.assistants.get_subgraphs(
        w["assistant"]["assistant_id"], namespace="inner", recurse=True
    ),
    "assistants.search": lambda c, w: c.assistants.search(
        metadata=w["metadata"],
        graph_id="agent",
        name="two",
        sort_by="name",
        sort_order="asc",
        select=["name"],
        **PAGE,
    ),
    "assistants.count": lambda c, w: c.assistants.count(metadata=w["metadata"], graph_id="agent", name="two"),
    "assistants.get_versions": lambda c, w: c.assistants.get_versions(
        w["assistant"]["assistant_id"], metadata={}, **PAGE
    ),
    "assistants.set_latest": lambda c, w: c.assistants.set_latest(w["assistant"]["assistant_id"], 1),
    "assistants.delete": lambda c, w: c.assistants.delete(w["assistant"]["assistant_id"], delete_threads=True),
    "threads.create": keep(
        "filled",
        lambda c, w: c.threads.create(
            thread_id=unique(),
            if_exists="do_nothing",
            graph_id="agent",
            metadata=w["metadata"],
            ttl={"ttl": 30, "strategy": "delete"},
            supersteps=[{"updates": [{"values": INPUT, "as_node": "__input__"}]}],
        ),
    ),
    "threads.get": lambda c, w: c.threads.get(w["thread_id"], include=["ttl"]),
    "threads.update": lambda c, w: c.threads.update(
        w["thread_id"], metadata={"changed": True}, ttl=60, return_minimal=True
    ),
    "threads.copy": keep("copied", lambda c, w: c.threads.copy(w["thread_id"])),
    "threads.search": lambda c, w: c.threads.search(
        metadata=w["metadata"],
        ids=[w["thread_id"]],
        status="idle",
        values=INPUT,
        sort_by="updated_at",
        sort_order="desc",
        select=["thread_id"],
        extract={"topic": "values.topic"},
        **PAGE,
    ),
    "threads.count": lambda c, w: c.threads.count(metadata=w["metadata"], status="idle", values={}),
    "threads.get_history": keep(
        "history",
        lambda c, w: c.threads.get_history(w["thread_id"], limit=5, metadata={}, select=["checkpoint", "values"]),
    ),
    "threads.get_state": lambda c, w: c.threads.get_state(
        w["thread_id"], checkpoint=w["history"][1]["checkpoint"], subgraphs=True, select=["values"]
    ),
    "threads.update_state": lambda c, w: c.threads.update_state(
        w["copied"]["thread_id"], {"topic": "wasps"}, as_node="finish"
    ),
    "threads.join_stream": lambda c, w: first(
        c.threads.join_stream(w["thread_id"], last_event_id="-", stream_mode=["run_modes"])
    ),
    "threads.stream": thread_stream,
    "threads.prune": lambda c, w: c.threads.prune([w["filled"]["thread_id"]], strategy="keep_latest"),
    "threads.delete": lambda c, w: c.threads.delete(w["copied"]["thread_id"]),
    "runs.create": lambda c, w: c.runs.create(w["thread_id"], "agent", metadata=w["metadata"], **RUN_OPTIONS, **STREAMED),
    "runs.create_batch": lambda c, w: c.runs.create_batch(
        [{"assistant_id": "agent", "input": INPUT, "metadata": w["metadata"], "durability": "exit", **STREAMED}]
    ),
    "runs.stream": lambda c, w: c.runs.stream(
        w["thread_id"], "agent", metadata=w["metadata"], on_disconnect="continue", **RUN_OPTIONS, **STREAMED
    ),
    "runs.stream (feedback_keys)": lambda c, w: c.runs.stream(None, "agent", input=INPUT, feedback_keys=["stars"]),
    "runs.wait": lambda c, w: c.runs.wait(
        unique(), "agent", metadata=w["metadata"], on_disconnect="continue", raise_error=True, **RUN_OPTIONS
    ),
    "runs.list": lambda c, w: c.runs.list(w["thread_id"], status="success", select=["run_id"], **PAGE),
    "runs.get": lambda c, w: c.runs.get(w["thread_id"], w["run_id"]),
    "runs.join": lambda c, w: c.runs.join(w["thread_id"], w["run_id"]),
    "runs.join_stream": lambda c, w: c.runs.join_stream(
        w["thread_id"], w["run_id"], last_event_id="-1", stream_mode=["values"], cancel_on_disconnect=True
    ),
    "runs.cancel": cancel,
    "runs.cancel_many": cancel_many,
    "runs.delete": lambda c, w: c.runs.delete(w["thread_id"], w["run_id"]),
    "crons.create": keep(
        "cron",
        lambda c, w: c.crons.create(
            "agent", metadata=w["metadata"], on_run_completed="keep", **CREATED, **SCHEDULE
        ),
    ),
    "crons.create_for_thread": lambda c, w: c.crons.create_for_thread(
        w["thread_id"], "agent", metadata=w["metadata"], **CREATED, **SCHEDULE
    ),
    "crons.search": lambda c, w: c.crons.search(
        metadata=w["metadata"],
        assistant_id="agent",
        enabled=False,
        sort_by="created_at",
        sort_order="desc",
        select=["cron_id"],
        **PAGE,
    ),
    "crons.count": lambda c, w: c.crons.count(metadata=w["metadata"], assistant_id="agent"),
    "crons.update": lambda c, w: c.crons.update(
        w["cron"]["cron_id"], metadata={"changed": True}, on_run_completed="delete", **SCHEDULE
    ),
    "crons.delete": lambda c, w: c.crons.delete(w["cron"]["cron_id"]),
    "store.put_item": lambda c, w: c.store.put_item(w["namespace"], key="a", value={"stars": 3}, index=False, ttl=60),
    "store.get_item": lambda c, w: c.store.get_item(w["namespace"], key="a", refresh_ttl=True),
    "store.search_items": keep(
        "found", lambda c, w: c.store.search_items(w["namespace"], filter={"stars": {"$gte": 2}}, refresh_ttl=False, **PAGE)
    ),
    "store.list_namespaces": lambda c, w: c.store.list_namespaces(prefix=w["namespace"], suffix=[], max_depth=2, **PAGE),
    "store.delete_item": lambda c, w: c.store.delete_item(w["namespace"], key="a"),
    "http.get": lambda c, w: c.http.get("/info"),
    "http.post": lambda c, w: c.http.post("/threads", json={}),
    "http.put": lambda c, w: c.http.put("/store/items", json={"namespace": w["namespace"], "key": "b", "value": {}}),
    "http.patch": lambda c, w: c.http.patch(f"/threads/{w['thread_id']}", json={"metadata": {}}),
    "http.delete": lambda c, w: c.http.delete(
        "/store/items", json={"namespace": w["namespace"], "key": "b"}
    ),
    "http.stream": lambda c, w: c.http.stream("/runs/stream", "POST", json={"assistant_id": "agent", "input": {}}),
    "http.request_reconnect": lambda c, w: c.http.request_reconnect(
        "/runs/wait", "POST", json={"assistant_id": "agent", "input": {}}
    ),
}

CONFIG: dict[str, Any] = {"configurable": {"thread_id": unique()}}


def stream_events(graph: RemoteGraph, w: World) -> None:
    with graph.stream_events(INPUT, version="v3"):
        pass


async def astream_events(graph: RemoteGraph, w: World) -> None:
    async with await graph.astream_events(INPUT, version="v3"):
        pass


REMOTE_GRAPH_CALLS: dict[str, Call] = {
    "copy": lambda g, w: g.copy({"name": "other"}),
    "with_config": lambda g, w: g.with_config(tags=["a"]).invoke(INPUT),
    "invoke": lambda g, w: g.invoke(INPUT, CONFIG),
    "ainvoke": lambda g, w: g.ainvoke(INPUT, CONFIG),
    "stream": lambda g, w: g.stream(INPUT, stream_mode=["values", "updates"], subgraphs=True),
    "astream": lambda g, w: g.astream(INPUT, stream_mode=["values", "updates"], subgraphs=True),
    "stream_events": stream_events,
    "astream_events": astream_events,
    "get_state": lambda g, w: g.get_state(CONFIG, subgraphs=True),
    "aget_state": lambda g, w: g.aget_state(CONFIG, subgraphs=True),
    "get_state_history": lambda g, w: g.get_state_history(CONFIG, limit=2),
    "aget_state_history": lambda g, w: g.aget_state_history(CONFIG, limit=2),
    "update_state": lambda g, w: g.update_state(CONFIG, {"topic": "wasps"}, as_node="finish"),
    "aupdate_state": lambda g, w: g.aupdate_state(CONFIG, {"topic": "wasps"}, as_node="finish"),
    "bulk_update_state": lambda g, w: g.bulk_update_state(CONFIG, []),
    "abulk_update_state": lambda g, w: g.abulk_update_state(CONFIG, []),
    "get_graph": lambda g, w: g.get_graph(xray=True),
    "aget_graph": lambda g, w: g.aget_graph(xray=True),
}


async def main(url: str) -> None:
    sent: list[dict] = []

    async def record_async(request: httpx.Request) -> None:
        record(request, sent)

    client = get_client(url=url, api_key=None)
    client.http.client.event_hooks = {"request": [record_async]}
    sync_client = get_sync_client(url=url, api_key=None)
    sync_client.http.client.event_hooks = {"request": [lambda request: record(request, sent)]}

    graph = RemoteGraph("agent", client=client, sync_client=sync_client)
    await call_all("python_remote_graph", graph, {}, REMOTE_GRAPH_CALLS, methods_of(graph), sent)
    # A client closes its connections last.
    calls = {**CALLS, "aclose": lambda c, w: c.aclose()}
    await call_all("python", client, await set_up(client), calls, names_in(client), sent)
    calls = {**CALLS, "close": lambda c, w: c.close()}
    await call_all("python_sync", sync_client, await set_up(sync_client), calls, names_in(sync_client), sent)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(sys.argv[1]))
