"""Scenarios with the asynchronous client."""

import asyncio

import httpx
from checks import ANSWER, ASK, QUESTION, REFUND, REJECTED, TRAIL, contains, has, same, unique
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError


async def new_thread(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


async def events_of(stream) -> list:
    return [(part.event, part.data) async for part in stream]


async def refused(awaitable, kind: type[Exception], text: str) -> None:
    try:
        await awaitable
    except kind as error:
        contains(error, text)
    else:
        raise AssertionError(f"expected {kind.__name__}, but it was answered")


async def start_waiting(client: LangGraphClient):
    """A run that has begun to wait for ever, and the rest of its stream."""
    thread_id, created = await new_thread(client), []
    stream = client.runs.stream(thread_id, "waiting", input={}, stream_mode="custom", on_run_created=created.append)
    async for part in stream:
        if part.event == "custom":
            break
    return thread_id, created[0]["run_id"], asyncio.ensure_future(events_of(stream))


async def assistants(client: LangGraphClient) -> None:
    """assistants are created, changed, searched and deleted"""
    key = {"key": unique()}
    created = await client.assistants.create("agent", name="one", metadata=key, context={"tone": "kindly"}, description="First.")
    has(created, {"graph_id": "agent", "name": "one", "version": 1, "metadata": key, "description": "First.", "config": {}})
    id = created["assistant_id"]
    same(await client.assistants.get(id), created)
    await refused(client.assistants.create("agent", assistant_id=id), ConflictError, "Assistant already exists")
    same(await client.assistants.create("agent", assistant_id=id, if_exists="do_nothing"), created)
    has(await client.assistants.update(id, name="two", config={"tags": ["x"]}), {"version": 2, "name": "two", "metadata": key})
    same([found["name"] for found in await client.assistants.search(metadata=key)], ["two"])
    page = await client.assistants.search(metadata=key, limit=1, response_format="object")
    same([found["name"] for found in page["assistants"]], ["two"])
    same(await client.assistants.count(metadata=key), 1)
    same([version["version"] for version in await client.assistants.get_versions(id)], [2, 1])
    has(await client.assistants.set_latest(id, 1), {"version": 1, "name": "one"})
    has(await client.runs.wait(None, id, input={}), {"trail": [*TRAIL[:4], "finish kindly"]})
    await client.assistants.delete(id)
    await refused(client.assistants.get(id), NotFoundError, "Assistant not found")


async def graphs(client: LangGraphClient) -> None:
    """a graph is drawn, and gives its schemas and subgraphs"""
    drawing = await client.assistants.get_graph("agent")
    same([node["id"] for node in drawing["nodes"]], ["__start__", "begin", "inner", "finish", "__end__"])
    nodes = [node["id"] for node in (await client.assistants.get_graph("agent", xray=True))["nodes"]]
    contains(nodes, "inner:look")
    schemas = await client.assistants.get_schemas("agent")
    same(sorted(schemas["state_schema"]["properties"]), ["topic", "trail"])
    same(list(await client.assistants.get_subgraphs("agent", recurse=True)), ["inner", "inner|deepest"])
    same(list(await client.assistants.get_subgraphs("agent", namespace="inner")), ["inner"])


async def threads(client: LangGraphClient) -> None:
    """threads are created, changed, searched, copied and deleted"""
    key, id = {"key": unique()}, unique()
    created = await client.threads.create(thread_id=id, metadata=key, graph_id="echo")
    has(created, {"thread_id": id, "status": "idle", "values": None, "interrupts": {}, "metadata": {**key, "graph_id": "echo"}})
    same(await client.threads.get(id), created)
    await refused(client.threads.create(thread_id=id), ConflictError, "Thread already exists")
    has(await client.threads.update(id, metadata={"more": 1}), {"metadata": {**key, "graph_id": "echo", "more": 1}})
    await client.runs.wait(id, "echo", input={"text": "hi"})
    same([found["thread_id"] for found in await client.threads.search(metadata=key, status="idle")], [id])
    same([found["thread_id"] for found in await client.threads.search(values={"text": "hi"}, metadata=key)], [id])
    same(await client.threads.search(metadata=key, select=["thread_id"]), [{"thread_id": id}])
    same(await client.threads.count(metadata=key), 1)
    copy = await client.threads.copy(id)
    has(await client.threads.get_state(copy["thread_id"]), {"values": {"text": "hi", "echo": "hi", "messages": []}})
    await client.threads.delete(id)
    await refused(client.threads.get(id), NotFoundError, f"Thread with ID {id} not found")


async def streams(client: LangGraphClient) -> None:
    """runs are streamed in every mode that clients use"""
    created = []
    stream = client.runs.stream(await new_thread(client), "echo", input={"text": "hi"}, on_run_created=created.append)
    same(
        await events_of(stream),
        [
            ("metadata", {"run_id": created[0]["run_id"], "attempt": 1}),
            ("values", {"text": "hi", "messages": []}),
            ("values", {"text": "hi", "echo": "hi", "messages": []}),
        ],
    )
    modes = ["values", "updates", "custom"]
    events = await events_of(client.runs.stream(await new_thread(client), "research", input={"question": "bees?"}, stream_mode=modes))
    same({event for event, _ in events}, {"metadata", *modes})
    pieces = await events_of(client.runs.stream(None, "support_desk", input=ASK, stream_mode="messages-tuple"))
    messages = [data[0] for event, data in pieces if event == "messages"]
    same("".join(message["content"] for message in messages if message["id"] == messages[-1]["id"]), ANSWER)
    grown = await events_of(client.runs.stream(None, "support_desk", input=ASK, stream_mode="messages"))
    same([data[0]["content"] for event, data in grown if event == "messages/complete"][-1], ANSWER)


async def subgraphs(client: LangGraphClient) -> None:
    """subgraphs are streamed under their namespace, in both formats of the client"""
    ask = {"input": {}, "stream_mode": ["updates"], "stream_subgraphs": True}
    events = await events_of(client.runs.stream(None, "agent", **ask))
    names = [event.split("|")[0] for event, _ in events if "|" in event]
    same(names, ["updates"] * 4)
    parts = [part async for part in client.runs.stream(None, "agent", version="v2", **ask)]
    depths = [(len(part["ns"]), list(part["data"])[0]) for part in parts if part["type"] == "updates"]
    same(depths, [(0, "begin"), (1, "look"), (2, "dig"), (2, "fill"), (1, "deepest"), (0, "inner"), (0, "finish")])


async def waits(client: LangGraphClient) -> None:
    """runs are waited for, and a failed one is an exception"""
    thread_id = await new_thread(client)
    same(await client.runs.wait(thread_id, "echo", input={"text": "hi"}), {"text": "hi", "echo": "hi", "messages": []})
    failing = client.runs.wait(thread_id, "failing", input={"color": "octarine"})
    await refused(failing, Exception, 'RangeError: There is no color "octarine".')
    answer = await client.runs.wait(thread_id, "failing", input={}, raise_error=False)
    has(answer["__error__"], {"error": "RangeError"})
    last = (await events_of(client.runs.stream(None, "failing", input={"color": "octarine"})))[-1]
    same(last, ("error", {"error": "RangeError", "message": 'There is no color "octarine".'}))


async def joins(client: LangGraphClient) -> None:
    """runs are created, joined and listed"""
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input={}, metadata={"key": "value"})
    has(run, {"thread_id": thread_id, "status": "pending", "multitask_strategy": "enqueue"})
    has(await client.runs.join(thread_id, run["run_id"]), {"trail": TRAIL})
    has(await client.runs.get(thread_id, run["run_id"]), {"status": "success"})
    same([listed["run_id"] for listed in await client.runs.list(thread_id, status="success")], [run["run_id"]])
    same(await client.runs.list(thread_id, select=["status"]), [{"status": "success"}])
    await refused(client.runs.get(thread_id, unique()), NotFoundError, "Run not found")
    await refused(client.runs.create(thread_id, "nobody"), NotFoundError, 'No assistant found for "nobody"')
    await refused(client.runs.create("no-uuid", "echo"), UnprocessableEntityError, "UUID")


async def replays(client: LangGraphClient) -> None:
    """a run is read again from the start, after an event, and in some modes"""
    thread_id = await new_thread(client)
    stream = client.runs.stream(thread_id, "agent", input={}, stream_mode=["updates", "values"])
    parts = [part async for part in stream]
    same([part.id for part in parts], [str(position + 1) for position in range(len(parts))])
    run_id = parts[0].data["run_id"]

    async def joined(**options) -> list:
        return [part async for part in client.runs.join_stream(thread_id, run_id, **options)]

    same(await joined(last_event_id="-1", stream_mode=["updates", "values"]), parts)
    same(await joined(last_event_id="-1", stream_mode="updates"), [part for part in parts if part.event != "values"])
    same(await joined(last_event_id="-1"), parts)
    same(await joined(last_event_id="3"), parts[3:])


async def breaks(client: LangGraphClient) -> None:
    """a connection that breaks costs the reader of a run nothing"""
    thread_id = await new_thread(client)
    stream = client.runs.stream(thread_id, "research", input={"question": "bees?"}, stream_mode=["custom", "updates"])
    ids = [int(part.id) async for part in stream]
    same(ids, list(range(1, len(ids) + 1)))
    same(len(ids) > 10, True)


async def cancels(client: LangGraphClient) -> None:
    """runs are cancelled, and refused on a busy thread"""
    thread_id, run_id, rest = await start_waiting(client)
    await refused(client.runs.create(thread_id, "echo", multitask_strategy="reject"), ConflictError, REJECTED)
    await refused(client.threads.update_state(thread_id, {"steps": []}), ConflictError, "Thread is busy")
    same(await client.runs.cancel(thread_id, run_id, wait=True), None)
    has(await client.runs.get(thread_id, run_id), {"status": "interrupted"})
    has(await client.threads.get(thread_id), {"status": "idle", "values": {"steps": ["arrived"]}})
    await rest
    await refused(client.runs.cancel(thread_id, run_id), ConflictError, "has ended")
    thread_id, run_id, rest = await start_waiting(client)
    await client.runs.cancel(thread_id, run_id)
    same(await client.runs.join(thread_id, run_id), {"steps": ["arrived"]})
    await rest


async def rollbacks(client: LangGraphClient) -> None:
    """a run is undone, alone, among several, and by one that takes its place"""
    thread_id, run_id, rest = await start_waiting(client)
    same(await client.runs.cancel(thread_id, run_id, wait=True, action="rollback"), None)
    await rest
    await refused(client.runs.get(thread_id, run_id), NotFoundError, "Run not found")
    has(await client.threads.get(thread_id), {"status": "idle", "values": None})
    thread_id, run_id, rest = await start_waiting(client)
    await client.runs.cancel_many(thread_id=thread_id, run_ids=[run_id], action="rollback")
    await rest
    same(await client.runs.list(thread_id), [])
    thread_id, run_id, rest = await start_waiting(client)
    run = await client.runs.create(thread_id, "echo", input={"text": "instead"}, multitask_strategy="rollback")
    has(await client.runs.join(thread_id, run["run_id"]), {"text": "instead"})
    await rest
    same([r["run_id"] for r in await client.runs.list(thread_id)], [run["run_id"]])


async def interrupts(client: LangGraphClient) -> None:
    """an interrupt is shown, and resumed with an answer"""
    thread_id = await new_thread(client)
    paused = await client.runs.wait(thread_id, "support_desk", input=REFUND)
    same(paused["__interrupt__"][0]["value"]["question"], QUESTION)
    has(await client.threads.get(thread_id), {"status": "interrupted"})
    has(await client.threads.get_state(thread_id), {"next": ["approve"]})
    resume = {"resume": {"decision": "approve"}}
    parts = [part async for part in client.runs.stream(thread_id, "support_desk", command=resume, stream_mode=["updates"])]
    same([list(part.data)[0] for part in parts if part.event == "updates"], ["approve", "tools", "agent"])
    statuses = [run["status"] for run in await client.runs.list(thread_id)]
    same(statuses, ["success", "interrupted"])
    thread_id = await new_thread(client)
    ask = {"input": REFUND, "stream_mode": "values", "version": "v2"}
    parts = [part async for part in client.runs.stream(thread_id, "support_desk", **ask)]
    same([interrupt["value"]["question"] for interrupt in parts[-1]["interrupts"]], [QUESTION])


async def states(client: LangGraphClient) -> None:
    """states and their history are read and changed"""
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, "agent", input={"topic": "bees"}, interrupt_before=["finish"], metadata={"turn": 1})
    state = await client.threads.get_state(thread_id)
    has(state, {"next": ["finish"], "values": {"topic": "bees", "trail": TRAIL[:4]}})
    history = await client.threads.get_history(thread_id)
    same([past["next"] for past in history], [["finish"], ["inner"], ["begin"], ["__start__"]])
    same(history[0], state)
    same(await client.threads.get_history(thread_id, limit=1, before=history[1]["checkpoint"]), [history[2]])
    same(await client.threads.get_history(thread_id, limit=1, before=history[1]["checkpoint"]["checkpoint_id"]), [history[2]])
    same(len(await client.threads.get_history(thread_id, metadata={"turn": 1})), 4)
    same(await client.threads.get_history(thread_id, metadata={"turn": 2}), [])
    same(await client.threads.get_state(thread_id, checkpoint=history[1]["checkpoint"]), history[1])
    has(await client.threads.get_state(thread_id, select=["next", "values.topic"]), {"next": ["finish"], "values": {"topic": "bees"}})
    updated = await client.threads.update_state(thread_id, {"topic": "wasps"}, as_node="finish")
    has(updated["checkpoint"], {"thread_id": thread_id, "checkpoint_ns": ""})
    has(await client.threads.get_state(thread_id), {"next": [], "values": {"topic": "wasps", "trail": TRAIL[:4]}})


async def forks(client: LangGraphClient) -> None:
    """a run starts from an earlier checkpoint"""
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, "agent", input={"topic": "bees"}, interrupt_before=["finish"])
    history = await client.threads.get_history(thread_id)
    forked = await client.runs.wait(thread_id, "agent", checkpoint=history[1]["checkpoint"], context={"tone": "kindly"})
    has(forked, {"topic": "bees", "trail": [*TRAIL[:4], "finish kindly"]})


async def stateless(client: LangGraphClient) -> None:
    """stateless runs are waited for, streamed and created in batches"""
    same(await client.runs.wait(None, "echo", input={"text": "hi"}), {"text": "hi", "echo": "hi", "messages": []})
    events = await events_of(client.runs.stream(None, "agent", input={}, stream_mode="updates"))
    same(len(events), 4)
    key = {"key": unique()}
    bodies = [{"assistant_id": "echo", "input": {"text": text}, "on_completion": "keep", "metadata": key} for text in ("one", "two")]
    batch = await client.runs.create_batch(bodies)
    same([run["kwargs"]["input"]["text"] for run in batch], ["one", "two"])
    for run in batch:
        has(await client.runs.join(run["thread_id"], run["run_id"]), {"echo": run["kwargs"]["input"]["text"]})
    same(len(await client.threads.search(metadata=key)), 2)
    wrong = client.runs.wait(None, "nobody", input={})
    await refused(wrong, httpx.HTTPStatusError, "404")


TRANSPORTS = ("sse", "websocket")
SLOWLY = {"configurable": {"delay_ms": 20}}


async def turns(client: LangGraphClient) -> None:
    """a thread is streamed run by run, each with its own output"""
    for transport in TRANSPORTS:
        thread_id = None
        for text in ("one", "two", "three"):
            async with client.threads.stream(thread_id, assistant_id="echo", transport=transport) as thread:
                await thread.run.start(input={"text": text})
                has(await thread.output, {"echo": text})
                thread_id = thread.thread_id


async def messages(client: LangGraphClient) -> None:
    """the messages of a thread are streamed in pieces, and an interrupt is answered"""
    for transport in TRANSPORTS:
        async with client.threads.stream(assistant_id="support_desk", transport=transport) as thread:
            # The client ends its streams when one of them has shown the end of the run, so the run must not be over before they are open.
            await thread.run.start(input=ASK, config=SLOWLY)
            # The client fills the texts while it is asked for messages.
            messages = [message async for message in thread.messages]
            texts = [[piece async for piece in message.text] for message in messages]
            same("".join(texts[-1]), ANSWER)
            same(len(texts[-1]) > 3, True)
        async with client.threads.stream(assistant_id="support_desk", transport=transport) as thread:
            await thread.run.start(input=REFUND, config=SLOWLY)
            async for _ in thread.values:
                pass
            same([interrupt["value"]["question"] for interrupt in thread.interrupts], [QUESTION])
            await thread.run.respond({"decision": "approve"})
            output = await thread.output
            contains(output["messages"][-1]["content"], "is on its way back to you")


RUNS = [assistants, graphs, threads, streams, subgraphs, waits, joins, replays, cancels, rollbacks, interrupts, states, forks, stateless]
SCENARIOS = [*RUNS, turns, messages]

# With a client whose connection breaks once, after the third event of a stream.
BREAKING = [breaks]
