"""The main path with the synchronous client."""

import json
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

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


def crons(client: SyncLangGraphClient) -> None:
    """crons are created, searched, counted, changed and deleted"""
    metadata = {"key": unique()}
    end = datetime(2999, 1, 1)
    cron = client.crons.create("echo", schedule="0 9 * * 1-5", timezone="Europe/Berlin", end_time=end, metadata=metadata)
    has(cron, {"schedule": "0 9 * * 1-5", "end_time": "2999-01-01T00:00:00.000+00:00", "enabled": True})
    thread_id = client.threads.create()["thread_id"]
    client.crons.create_for_thread(thread_id, "echo", schedule="* * * * *", metadata=metadata, enabled=False)
    same([found["thread_id"] for found in client.crons.search(metadata=metadata, enabled=False)], [thread_id])
    same(client.crons.count(metadata=metadata, assistant_id="echo"), 2)
    changed = client.crons.update(cron["cron_id"], enabled=False, end_time=None)
    has(changed, {"enabled": False, "end_time": None, "next_run_date": None})
    client.crons.delete(cron["cron_id"])
    refused(lambda: client.crons.delete(cron["cron_id"]), NotFoundError, "not found")


def threads(client: SyncLangGraphClient) -> None:
    """threads have a time to live and are pruned"""
    thread = client.threads.create(ttl={"ttl": 30, "strategy": "keep_latest"})
    has(client.threads.get(thread["thread_id"], include=["ttl"])["ttl"], {"strategy": "keep_latest", "ttl_minutes": 30})
    same(client.threads.prune([thread["thread_id"], unique()]), {"pruned_count": 1})
    refused(lambda: client.threads.get(thread["thread_id"]), NotFoundError, "not found")


def webhooks(client: SyncLangGraphClient) -> None:
    """a webhook is called when a run ends"""
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.timeout = 20
        run = client.runs.create(None, "echo", input={"text": "hi"}, webhook=f"http://127.0.0.1:{server.server_port}")
        server.handle_request()
    has(received[0], {"run_id": run["run_id"], "status": "success"})
    has(received[0]["values"], {"echo": "hi"})


def store(client: SyncLangGraphClient) -> None:
    """items are stored, found, listed and deleted"""
    namespace = ["users", unique()]
    client.store.put_item(namespace, key="a", value={"kind": "note", "stars": 3}, ttl=60, index=False)
    has(client.store.get_item(namespace, key="a", refresh_ttl=True), {"namespace": namespace, "value": {"kind": "note", "stars": 3}})
    found = client.store.search_items(namespace, filter={"stars": {"$gte": 2}}, limit=5)
    same([item["key"] for item in found["items"]], ["a"])
    same(client.store.list_namespaces(prefix=namespace, max_depth=3), {"namespaces": [namespace]})
    client.store.delete_item(namespace, key="a")
    same(client.store.get_item(namespace, key="a"), None)


SCENARIOS = [assistants, runs, replays, interrupts, cancels, batches, crons, threads, webhooks, store]
