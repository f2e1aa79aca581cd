"""DeltaChannel, forks in nodes, embeddings, and resume values of crashed attempts."""

import array
import base64
import json
from typing import Any

import pytest

from conftest import BASIC
from service import Service


def contents(outcome: dict[str, Any]) -> list[str]:
    return [message["content"] for message in json.loads(outcome["output"])["messages"]]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_delta_channels(service: Service, durability: str) -> None:
    thread_id = None
    expected: list[str] = []
    for turn in range(3):
        message = {"role": "user", "content": f"turn {turn}"}
        outcome, order = await service.run("deltas", thread_id, input={"messages": [message]}, durability=durability)
        thread_id = order["thread_id"]
        expected += [f"turn {turn}", f"reply {len(expected) + 1}", f"reply {len(expected) + 2}"]
        assert contents(outcome) == expected
    state = json.loads(await service.query("state", "deltas", checkpoint={"thread_id": thread_id}))
    assert [message["content"] for message in state["values"]["messages"]] == expected


@pytest.mark.parametrize(("per_page", "requests"), [(1000, 1), (4, 4)])
async def test_ancestors_of_a_delta_channel_are_read_with_one_request_per_page(
    service: Service, per_page: int, requests: int
) -> None:
    service.rows.ancestors_per_page = per_page
    thread_id = None
    for _ in range(4):
        message = {"role": "user", "content": "hello"}
        _, order = await service.run("deltas", thread_id, input={"messages": [message]})
        thread_id = order["thread_id"]
    # Each turn has an input and three steps.
    assert len(service.rows.checkpoints) == 16
    before = len(service.requests)
    outcome, _ = await service.run("deltas", thread_id, input={"messages": [{"role": "user", "content": "again"}]})
    assert contents(outcome)[12:] == ["again", "reply 13", "reply 14"]
    reads = [one["request"]["op"] for one in service.requests[before:] if one["request"]["op"] in ("get", "ancestors")]
    assert reads == ["ancestors"] * requests
    before = len(service.requests)
    await service.query("state", "deltas", checkpoint={"thread_id": thread_id})
    assert [one["request"]["op"] for one in service.requests[before:]][:2] == ["get", "ancestors"]


async def test_update_of_a_delta_channel(service: Service) -> None:
    """The first superstep of an update is staged, and the ancestors of the second one are staged and stored."""
    _, order = await service.run("deltas", input={"messages": [{"role": "user", "content": "hello"}]})
    checkpoint = {"thread_id": order["thread_id"]}
    supersteps = [
        [{"values": {"messages": [{"role": "user", "content": text}]}, "as_node": "one"}] for text in ("first", "second")
    ]
    staged = await service.query("update", "deltas", checkpoint=checkpoint, supersteps=supersteps)
    messages = json.loads(staged["state"]["values"])["messages"]
    assert [message["content"] for message in messages] == ["hello", "reply 1", "reply 2", "first", "second"]


async def test_input_of_a_delta_channel_is_repeated_after_a_crash(service: Service) -> None:
    """LangGraph stores a copy of such an input before the input: alone it is no progress of an earlier attempt."""
    outcome, order = await service.run("delta_input", input={"items": [1]})
    thread_id = order["thread_id"]
    count = len(service.rows.checkpoints)
    _, crashed = await service.run("delta_input", thread_id, input={"items": [2]})
    for key in list(service.rows.checkpoints)[count:]:
        del service.rows.checkpoints[key]
    head = service.rows.head(thread_id)
    assert head is not None
    prior = [{"task_id": write["task_id"], "channel": write["channel"]} for write in head["writes"]]
    assert len(prior) == 1
    options: dict[str, Any] = {"run_id": crashed["run_id"], "epoch": 2, "prior_writes": prior}
    outcome, _ = await service.run("delta_input", thread_id, input={"items": [2]}, **options)
    assert outcome["ended"] == "success"
    assert json.loads(outcome["output"]) == {"items": [1, 2], "count": 2}


async def test_remaining_resume_values_after_a_crash(service: Service) -> None:
    """One of two tasks has consumed its resume value and ended; the other one still gets its own."""
    outcome, order = await service.run("ask_two", input={"text": "x"})
    thread_id = order["thread_id"]
    opened = {
        one["value"]: (task_id, one["id"])
        for task_id, task in json.loads(outcome["state"]["interrupts"]).items()
        for one in task
    }
    resume = {identifier: question for question, (_, identifier) in opened.items()}
    head = service.rows.head(thread_id)
    assert head is not None
    # What the crashed attempt has stored: the left task is complete.
    left = opened["left?"][0]
    at = {name: head[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    template = next(write for write in head["writes"] if write["task_id"] == left)
    value = base64.b64encode(b"\x91\xa5left?").decode()
    stored = {**template, "type": "msgpack", "value": value}
    service.rows.put_writes(
        {**at, "writes": [{**stored, "idx": -4, "channel": "__resume__"}, {**stored, "idx": 0, "channel": "log"}]}
    )
    prior = [{"task_id": left, "channel": "__resume__"}, {"task_id": left, "channel": "log"}]
    options: dict[str, Any] = {"epoch": 2, "prior_writes": prior, "command": {"resume": resume}}
    outcome, _ = await service.run("ask_two", thread_id, **options)
    assert outcome["ended"] == "success", outcome
    assert sorted(json.loads(outcome["output"])["log"]) == ["left?", "right?"]


async def test_fork_in_a_node(service: Service) -> None:
    outcome, _ = await service.run("fork", input={"text": "x"})
    assert json.loads(outcome["output"])["text"] == "child 0"
    outcome, _ = await service.run("echo", input={"text": "x"})
    assert outcome["ended"] == "success"


async def test_embeddings(bare_service: Service) -> None:
    embed = {"file": str(BASIC / "graphs.py"), "export_name": "embed"}
    await bare_service.load(BASIC, {"echo": "graphs.py:echo"}, role="queries", embed=embed)
    value = await bare_service.query("embed", "echo", texts=["a", "abc"], is_query=False, dims=3)
    assert array.array("f", base64.b64decode(value)).tolist() == [1, 0, 0, 1, 0, 0]
    with pytest.raises(RuntimeError, match="Vector 0 must be a list of 4 numbers"):
        await bare_service.query("embed", "echo", texts=["a"], is_query=True, dims=4)


async def test_no_embeddings(service: Service) -> None:
    with pytest.raises(RuntimeError, match=r"langgraph\.json has no store\.index"):
        await service.query("embed", "echo", texts=["a"], is_query=True, dims=4)
