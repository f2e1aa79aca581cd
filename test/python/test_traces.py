"""Traces: the runs of a trace that the host sends."""

import asyncio
import json
import pathlib
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

from conftest import BASIC
from service import Service

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from threadmill_host.trace_sink import TraceSink

STARTED_AT = 1769860800123
TRACE: dict[str, Any] = {"project_name": "shore", "started_at": STARTED_AT, "metadata": {"team": "blue"}, "tags": ["b"]}
ASK = {"messages": [{"type": "human", "content": "when?"}]}


async def trace_of(service: Service, order: dict[str, Any]) -> dict[str, Any]:
    """Returns the runs of a trace by name, once the last has been sent."""
    key = (order["run_id"], order["epoch"])
    await service.wait_for(lambda message: message["type"] == "trace" and _key(message) == key and message["is_last"])
    return {run["name"]: run for run in runs_sent(service, order)}


def runs_sent(service: Service, order: dict[str, Any]) -> list[dict[str, Any]]:
    key = (order["run_id"], order["epoch"])
    messages = [one for one in service.received if one["type"] == "trace" and _key(one) == key]
    return [run for message in messages for run in json.loads(f"[{message['runs']}]")]


async def test_bound_callbacks(service: Service) -> None:
    counts = [
        json.loads((await service.run("counted", input={"text": "x"}, **options))[0]["output"])["log"][-1]
        for options in ({}, {"trace": TRACE}, {})
    ]
    assert counts[0] > 0 and counts[1] - counts[0] == counts[2] - counts[1] == counts[0]


async def open_runs(service: Service, order: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs of the graph and its node, which a busy host sends in two messages."""
    await service.wait_for(lambda _: len(runs_sent(service, order)) >= 2)
    return runs_sent(service, order)


def _key(message: dict[str, Any]) -> tuple[str, int]:
    return message["run_id"], message["epoch"]


async def traced(service: Service, graph: str, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the trace of a run, and the run's order."""
    _, order = await service.run(graph, **{"trace": TRACE, **options})
    return await trace_of(service, order), order


async def test_nesting_inputs_and_outputs(service: Service) -> None:
    example_id = str(uuid.uuid4())
    config = {"metadata": {"color": "red"}, "tags": ["a"]}
    runs, order = await traced(service, "traced", input=ASK, config=config, trace={**TRACE, "example_id": example_id})
    assert list(runs) == ["traced", "sub", "LangGraph", "node", "search", "GenericFakeChatModel"]
    parents = {name: run.get("parent_run_id") for name, run in runs.items()}
    assert parents == {
        "traced": None,
        "sub": runs["traced"]["id"],
        "LangGraph": runs["sub"]["id"],
        "node": runs["LangGraph"]["id"],
        "search": runs["node"]["id"],
        "GenericFakeChatModel": runs["node"]["id"],
    }
    root = runs["traced"]
    assert root["id"] == order["run_id"] and "error" not in root
    assert datetime.fromisoformat(root["start_time"]).timestamp() * 1000 == STARTED_AT
    assert root["inputs"] == ASK
    assert [message["content"] for message in root["outputs"]["messages"]] == ["when?", "yes"]
    assert set(root["tags"]) == {"a", "b"}
    assert [run.get("reference_example_id") for run in runs.values()] == [example_id, *[None] * 5]
    metadata = root["extra"]["metadata"]
    assert metadata["team"] == "blue" and metadata["color"] == "red" and metadata["run_attempt"] == 1
    assert metadata["graph_id"] == "traced"
    assert runs["search"]["run_type"] == "tool"
    assert (runs["search"]["inputs"], runs["search"]["outputs"]) == (
        {"query": "tides"},
        {"output": ["a page about tides"]},
    )
    segment = datetime.fromtimestamp(STARTED_AT / 1000, UTC).strftime("%Y%m%dT%H%M%S%fZ") + order["run_id"]
    for run in runs.values():
        assert run["trace_id"] == order["run_id"] and run["session_name"] == "shore" and run["end_time"]
        assert run["dotted_order"].split(".")[0] == segment and run["dotted_order"].endswith(run["id"])


async def test_tokens_of_models(service: Service) -> None:
    runs, _ = await traced(service, "traced", input=ASK)
    model = runs["GenericFakeChatModel"]
    assert model["run_type"] == "llm" and model["serialized"]
    assert model["inputs"]["messages"][0][0]["kwargs"]["content"] == "when?"
    message = model["outputs"]["generations"][0][0]["message"]["kwargs"]
    assert (message["content"], message["usage_metadata"]["total_tokens"]) == ("yes", 9)
    assert model["extra"]["metadata"]["usage_metadata"]["input_tokens"] == 7
    assert model["events"][0]["name"] == "start"


async def test_stream_modes(service: Service) -> None:
    for options in ({"stream_mode": ["events"]}, {"stream_protocol": "v2"}):
        runs, _ = await traced(service, "traced", input=ASK, subgraphs=True, **options)
        assert {"traced", "sub", "node", "GenericFakeChatModel"} <= set(runs)


async def test_secrets(service: Service) -> None:
    secrets = {"api_key": "s3cret", "accessToken": "s3cret", "__hidden": "s3cret", "db-password": "s3cret"}
    runs, _ = await traced(service, "traced", input=ASK, config={"configurable": {**secrets, "max_tokens": 7}})
    assert runs["traced"]["extra"]["metadata"]["max_tokens"] == 7
    assert "s3cret" not in json.dumps(runs)


async def test_errors(service: Service) -> None:
    runs, _ = await traced(service, "fail", input={"text": "x"})
    assert [run["error"] for run in runs.values()] == ["ValueError: it broke \ufffd"] * 2
    again, order = await traced(service, "unknown", input={"text": "x"})
    assert again["unknown"]["error"].endswith('Graph "unknown" not found.')
    assert again["unknown"]["inputs"] == {"text": "x"} and again["unknown"]["trace_id"] == order["run_id"]


async def test_interrupts(service: Service) -> None:
    runs, order = await traced(service, "ask_once", input={"text": "x"})
    (interrupt,) = runs["ask_once"]["outputs"]["__interrupt__"]
    assert interrupt["value"] == "one?" and "error" not in runs["ask_once"]
    answered, _ = await traced(service, "ask_once", thread_id=order["thread_id"], command={"resume": "Ada"})
    assert answered["ask_once"]["outputs"] == {"text": "x", "log": ["Ada"]}
    stopped, _ = await traced(service, "five", input={"text": "x"}, interrupt_before=["c"])
    assert stopped["five"]["outputs"]["__interrupt__"] == []


async def test_parents(service: Service) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    path = f"20260131T120000000000Z{first}.20260131T120000000001Z{second}"
    trace = {**TRACE, "parent": {"kind": "run", "dotted_order": path}}
    runs, order = await traced(service, "echo", input={"text": "x"}, trace=trace)
    assert runs["echo"]["parent_run_id"] == second
    assert runs["echo"]["dotted_order"].startswith(f"{path}.") and runs["node"]["parent_run_id"] == order["run_id"]
    assert {run["trace_id"] for run in runs.values()} == {first}
    trace = {**TRACE, "parent": {"kind": "span", "run_id": first}}
    runs, _ = await traced(service, "echo", input={"text": "x"}, trace=trace)
    assert runs["echo"]["parent_run_id"] == first and runs["node"]["parent_run_id"] == runs["echo"]["id"]
    assert not any("dotted_order" in run or "trace_id" in run for run in runs.values())


async def test_open_runs_are_sent_and_continue_elsewhere(service: Service) -> None:
    order = service.start_run("sleep", input={"text": "x"}, trace=TRACE)
    opened = await open_runs(service, order)
    assert [(run["name"], "end_time" in run) for run in opened] == [("sleep", False), ("node", False)]
    service.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "lease_lost"})
    runs = await trace_of(service, order)
    assert "end_time" not in runs["sleep"] and "inputs" not in runs["sleep"]
    again, _ = await traced(service, "echo", run_id=order["run_id"], epoch=2, input={"text": "y"})
    assert again["echo"]["dotted_order"] == opened[0]["dotted_order"]
    assert again["echo"]["error"] == "" and again["echo"]["inputs"] == {"text": "y"}


async def test_cancelled_runs_stay_open_for_the_service(service: Service) -> None:
    order = service.start_run("sleep", input={"text": "x"}, trace=TRACE)
    await open_runs(service, order)
    service.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "cancelled"})
    runs = await trace_of(service, order)
    assert "end_time" not in runs["sleep"] and runs["node"]["error"].startswith("CancelledError")


async def test_no_trace_without_an_order(service: Service) -> None:
    await service.run("traced", input=ASK)
    assert [message for message in service.received if message["type"] == "trace"] == []


async def test_traces_of_the_project_itself() -> None:
    """The project's client takes the runs as before, with the name that LangGraph gives the root."""
    received: list[dict[str, Any]] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")
            )
            received.append({"head": head, "body": await reader.readexactly(length)})
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    service = Service()
    settings = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": url, "LANGSMITH_API_KEY": "k"}
    await service.start({**settings, "LANGSMITH_PROJECT": "theirs", "LANGSMITH_DISABLE_RUN_COMPRESSION": "true"})
    try:
        await service.load(BASIC, {"traced": "graphs.py:traced"})
        runs, order = await traced(service, "traced", input=ASK)
        assert set(runs) == {"traced", "sub", "LangGraph", "node", "search", "GenericFakeChatModel"}
        for _ in range(100):
            sent = b"".join(request["body"] for request in received)
            if b"GenericFakeChatModel" in sent:
                break
            await asyncio.sleep(0.1)
        assert b'"session_name":"theirs"' in sent and b'"session_name":"shore"' not in sent
        assert order["run_id"].encode() in sent and b'"search"' in sent
    finally:
        await service.stop()
        server.close()


# The sink itself


class Sent:
    """A sink, and the messages that it has sent."""

    def __init__(self, trace: dict[str, Any] | None = None, epoch: int = 1) -> None:
        self.run_id = str(uuid.uuid4())
        self.messages: list[tuple[list[dict[str, Any]], bool]] = []
        order = {"run_id": self.run_id, "epoch": epoch, "graph_id": "graph", "kwargs": {"input": None}}
        self.sink = TraceSink(order, trace or TRACE, self._send, asyncio.get_running_loop())
        self.create(self.run_id)

    def _send(self, runs: str, is_last: bool) -> None:
        self.messages.append((json.loads(f"[{runs}]"), is_last))

    def create(self, run_id: str, path: str = "", **fields: Any) -> str:
        order = f"{path}.{self._segment(run_id)}" if path else self._segment(run_id)
        parent = path.split(".")[-1][-36:] or None
        fixed = {"id": run_id, "name": "step", "run_type": "chain", "dotted_order": order, "parent_run_id": parent}
        self.sink.create_run(**fixed, **{"inputs": {}, "outputs": {}, "extra": {}, "tags": [], **fields})
        return order

    @staticmethod
    def _segment(run_id: str) -> str:
        return f"20260131T120000000000Z{run_id}"

    def step(self, **fields: Any) -> str:
        run_id = str(uuid.uuid4())
        self.create(run_id, self._segment(self.run_id), **fields)
        return run_id

    def finish(self, ended: str = "success") -> list[dict[str, Any]]:
        self.sink.finish({"ended": ended, "output": "{}"}, None)
        return [run for runs, _ in self.messages for run in runs]


async def test_hidden_steps_are_left_out() -> None:
    sent = Sent()
    hidden, below = str(uuid.uuid4()), str(uuid.uuid4())
    path = sent.create(hidden, f"20260131T120000000000Z{sent.run_id}", tags=["langsmith:hidden"])
    sent.create(below, path)
    sent.sink.update_run(hidden, outputs={"a": 1}, end_time="2026-01-31T12:00:01Z")
    root, step = sent.finish()
    assert (root["id"], step["id"], step["parent_run_id"]) == (sent.run_id, below, sent.run_id)
    assert step["dotted_order"].split(".") == [root["dotted_order"], f"20260131T120000000000Z{below}"]


async def test_open_steps_end_with_the_run() -> None:
    sent = Sent()
    sent.step()
    root, step = sent.finish()
    assert step["error"] == "The run ended before this step finished." and step["end_time"] == root["end_time"]
    sent.step()
    assert len(sent.messages) == 1 and sent.messages[0][1]
    drained = Sent()
    assert "end_time" not in drained.finish("drained")[0]


async def test_large_values() -> None:
    sent = Sent()
    for size in (6, 6, 6, 21):
        sent.step(inputs={"text": "x" * size * 2**20}, end_time="2026-01-31T12:00:01Z")
    both = {"text": "x" * 19 * 2**20}
    sent.step(inputs=both, outputs=both, end_time="2026-01-31T12:00:01Z")
    runs = [run for run in sent.finish() if run["id"] != sent.run_id]
    assert [len(run["inputs"].get("text", "")) // 2**20 for run in runs] == [6, 6, 6, 0, 19]
    assert "too large" in runs[3]["inputs"]["dropped"] and "too large" in runs[4]["outputs"]["dropped"]
    assert len(sent.messages) > 3


class _Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


async def test_odd_values() -> None:
    circular: dict[str, Any] = {"name": "circle"}
    circular["self"] = circular
    values = {"circular": circular, "big": 10**30, "surrogate": "\ud800", "date": datetime.fromtimestamp(0, UTC)}
    sent = Sent()
    for name, value in values.items():
        sent.step(inputs={name: value})
    sent.step(inputs={"rude": _Rude()})
    sent.sink.create_run()
    steps = [run["inputs"] for run in sent.finish() if run["id"] != sent.run_id]
    assert "circle" in steps[0]["unserializable"]
    assert steps[1:4] == [{"big": 10**30}, {"surrogate": "\ufffd"}, {"date": "1970-01-01T00:00:00+00:00"}]
    assert steps[4] == {"unserializable": "dict"}


async def test_values_are_read_when_reported() -> None:
    sent = Sent()
    values = {"log": ["a"]}
    step = sent.step(inputs=values)
    values["log"].append("b")
    sent.sink.update_run(step, outputs=values, inputs=values, end_time="2026-01-31T12:00:01Z")
    values["log"].append("c")
    run = sent.finish()[-1]
    assert run["inputs"] == {"log": ["a"]} and run["outputs"] == {"log": ["a", "b"]}


async def test_many_steps_are_sent_in_between() -> None:
    sent = Sent()
    for _ in range(250):
        sent.step(end_time="2026-01-31T12:00:01Z")
    assert [len(runs) for runs, _ in sent.messages] == [100, 100]
    assert len(sent.finish()) == 251
