"""The main path with the synchronous client."""

from checks import ANSWER, ASK, QUESTION, REFUND, REJECTED, TRAIL, contains, has, same, unique
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError


def refused(call, kind: type[Exception], text: str) -> None:
    try:
        call()
    except kind as error:
        contains(error, text)
    else:
        raise AssertionError(f"expected {kind.__name__}, but it was answered")


def assistants(client: SyncLangGraphClient) -> None:
    """an assistant is created, found and deleted"""
    key = {"key": unique()}
    created = client.assistants.create("agent", name="one", metadata=key, context={"tone": "kindly"})
    id = created["assistant_id"]
    same(client.assistants.get(id), created)
    same([found["assistant_id"] for found in client.assistants.search(metadata=key)], [id])
    has(client.runs.wait(None, id, input={}), {"trail": [*TRAIL[:4], "finish kindly"]})
    client.assistants.delete(id)
    refused(lambda: client.assistants.get(id), NotFoundError, "Assistant not found")


def runs(client: SyncLangGraphClient) -> None:
    """runs are waited for, streamed, joined and listed"""
    thread_id = client.threads.create()["thread_id"]
    same(client.runs.wait(thread_id, "echo", input={"text": "hi"}), {"text": "hi", "echo": "hi", "messages": []})
    events = [(part.event, part.data) for part in client.runs.stream(thread_id, "agent", input={}, stream_mode=["updates"])]
    same([list(data)[0] for event, data in events if event == "updates"], ["begin", "inner", "finish"])
    run_id = events[0][1]["run_id"]
    has(client.runs.join(thread_id, run_id), {"trail": TRAIL})
    same([run["status"] for run in client.runs.list(thread_id)], ["success", "success"])
    failing = {"input": {"color": "octarine"}}
    refused(lambda: client.runs.wait(thread_id, "failing", **failing), Exception, "RangeError: There is no color")
    pieces = [part.data[0] for part in client.runs.stream(None, "support_desk", input=ASK, stream_mode="messages-tuple") if part.event == "messages"]
    same("".join(piece["content"] for piece in pieces if piece["id"] == pieces[-1]["id"]), ANSWER)


def replays(client: SyncLangGraphClient) -> None:
    """a run is read again from the start"""
    thread_id = client.threads.create()["thread_id"]
    parts = list(client.runs.stream(thread_id, "agent", input={}, stream_mode=["updates"]))
    same(list(client.runs.join_stream(thread_id, parts[0].data["run_id"], last_event_id="-1")), parts)


def interrupts(client: SyncLangGraphClient) -> None:
    """an interrupt is resumed, and the states are read"""
    thread_id = client.threads.create()["thread_id"]
    paused = client.runs.wait(thread_id, "support_desk", input=REFUND)
    same(paused["__interrupt__"][0]["value"]["question"], QUESTION)
    has(client.threads.get_state(thread_id), {"next": ["approve"]})
    done = client.runs.wait(thread_id, "support_desk", command={"resume": {"decision": "approve"}})
    contains(done["messages"][-1]["content"], "Your receipt is R-1042.")
    has(client.threads.get(thread_id), {"status": "idle", "interrupts": {}})
    history = client.threads.get_history(thread_id, limit=100)
    same(history[0]["next"], [])
    same(history[-1]["next"], ["__start__"])


def cancels(client: SyncLangGraphClient) -> None:
    """a run is cancelled, and another refused meanwhile"""
    thread_id = client.threads.create()["thread_id"]
    stream = client.runs.stream(thread_id, "waiting", input={}, stream_mode="custom")
    run_id = next(part for part in stream if part.event == "metadata").data["run_id"]
    next(part for part in stream if part.event == "custom")
    refused(lambda: client.runs.create(thread_id, "echo", multitask_strategy="reject"), ConflictError, REJECTED)
    client.runs.cancel(thread_id, run_id, wait=True)
    has(client.runs.get(thread_id, run_id), {"status": "interrupted"})
    same([part.event for part in stream], [])


def batches(client: SyncLangGraphClient) -> None:
    """stateless runs are created in batches"""
    batch = client.runs.create_batch([{"assistant_id": "echo", "input": {"text": text}} for text in ("one", "two")])
    same([run["kwargs"]["input"]["text"] for run in batch], ["one", "two"])


SCENARIOS = [assistants, runs, replays, interrupts, cancels, batches]
