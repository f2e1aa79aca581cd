"""Stream modes and events."""

import json
from typing import Any

import pytest

from service import Service

MODES = ["values", "updates", "messages-tuple", "messages", "custom", "tasks", "checkpoints", "debug", "events"]


async def test_values_and_updates(service: Service) -> None:
    _, order = await service.run("outer", input={"text": "x"}, stream_mode=["values", "updates"])
    assert service.events_of(order) == [
        ("values", {"text": "x", "log": []}),
        ("updates", {"before": {"log": ["before"]}}),
        ("values", {"text": "x", "log": ["before"]}),
        ("updates", {"sub": {"text": "x", "log": ["before", "inner"]}}),
        ("values", {"text": "x", "log": ["before", "before", "inner"]}),
    ]


async def test_only_requested_modes(service: Service) -> None:
    _, order = await service.run("custom", input={"text": "x"}, stream_mode=["custom"])
    assert service.events_of(order) == [("custom", {"number": number}) for number in range(3)]


async def test_subgraphs_have_namespaces(service: Service) -> None:
    _, order = await service.run("outer", input={"text": "x"}, stream_mode=["updates"], subgraphs=True)
    names = [name.split(":")[0] for name, _ in service.events_of(order)]
    assert names == ["updates", "updates|sub", "updates"]


@pytest.mark.parametrize("modes", [["values", "updates"], ["values", "custom"]])
async def test_graph_with_a_thread_of_its_own_in_a_node(service: Service, modes: list[str]) -> None:
    outcome, order = await service.run("own_thread", input={"text": "x"}, stream_mode=modes)
    assert outcome["ended"] == "interrupted", outcome
    values = service.events_of(order, "values")
    assert values[0] == {"text": "x", "log": []}
    assert values[1] == {"text": "x", "log": ["echo x"]}
    assert "__interrupt__" in values[-1] and len(values) == 3


@pytest.mark.parametrize("modes", [["updates", "tasks"], ["updates", "custom", "debug"]])
async def test_tasks_of_a_function(service: Service, modes: list[str]) -> None:
    outcome, order = await service.run("functional", input={"text": "x"}, stream_mode=modes)
    assert (outcome["ended"], json.loads(outcome["output"])) == ("success", "X")
    assert service.events_of(order, "updates") == [{"shout": "X"}, {"functional": "X"}]
    if "tasks" in modes:
        names = [event["name"] for event in service.events_of(order, "tasks")]
        assert sorted(names) == ["functional", "functional", "shout", "shout"]


async def test_messages_tuple(service: Service) -> None:
    message = {"role": "user", "content": "hi"}
    _, order = await service.run("chat", input={"messages": [message]}, stream_mode=["messages-tuple"])
    parts = service.events_of(order, "messages")
    assert "".join(part["content"] for part, _ in parts) == "hello world again"
    assert {part["type"] for part, _ in parts} == {"AIMessageChunk"}
    chunk, metadata = parts[0]
    assert chunk["tool_calls"] == [] and chunk["usage_metadata"] is None and chunk["example"] is False
    assert metadata["langgraph_node"] == "node" and metadata["ls_model_type"] == "chat"
    assert metadata["run_id"] == order["run_id"]
    assert not [key for key in metadata if key.startswith("__")]


async def test_messages(service: Service) -> None:
    message = {"role": "user", "content": "hi", "id": "human-1"}
    _, order = await service.run("chat", input={"messages": [message]}, stream_mode=["messages"])
    names = [name for name, _ in service.events_of(order)]
    assert names[0] == "messages/complete"
    assert names[1] == "messages/metadata"
    assert set(names[2:-1]) == {"messages/partial"}
    assert names[-1] == "messages/complete"
    partial = service.events_of(order, "messages/partial")
    assert [one["content"] for (one,) in partial][:3] == ["hello", "hello ", "hello world"]
    assert {one["type"] for (one,) in partial} == {"ai"}
    complete = service.events_of(order, "messages/complete")
    assert [[one["type"] for one in event] for event in complete] == [["human"], ["ai"]]
    assert complete[1][0]["content"] == "hello world again"


async def test_tasks_checkpoints_debug(service: Service) -> None:
    _, order = await service.run("echo", input={"text": "x"}, stream_mode=["tasks", "checkpoints", "debug"])
    tasks = service.events_of(order, "tasks")
    assert [set(task) >= {"id", "name", "input", "triggers"} for task in tasks[:1]] == [True]
    assert tasks[1]["result"] == {"text": "echo x", "log": ["node"]}
    checkpoints = service.events_of(order, "checkpoints")
    last = checkpoints[-1]
    assert last["values"] == {"text": "echo x", "log": ["node"]} and last["next"] == []
    assert last["checkpoint"]["thread_id"] == order["thread_id"]
    assert last["checkpoint"]["checkpoint_id"] == service.rows.head(order["thread_id"])["checkpoint_id"]  # type: ignore[index]
    assert last["parent_checkpoint"]["checkpoint_id"]
    text = json.dumps(service.events_of(order))
    assert "__threadmill" not in text and "__pregel" not in text
    debug = service.events_of(order, "debug")
    assert {one["type"] for one in debug} == {"checkpoint", "task", "task_result"}


async def test_events(service: Service) -> None:
    message = {"role": "user", "content": "hi"}
    outcome, order = await service.run("chat", input={"messages": [message]}, stream_mode=["events", "values"])
    assert outcome["ended"] == "success", outcome
    events = service.events_of(order, "events")
    names = [event["event"] for event in events]
    assert names[0] == "on_chain_start" and names[-1] == "on_chain_end"
    assert names.count("on_chat_model_stream") >= 3
    assert len(service.events_of(order, "values")) == 2
    assert "__threadmill" not in json.dumps(events)
    # The chunks of the root graph are no events of LangChain.
    assert not [one for one in events if one["event"] == "on_chain_stream" and one["run_id"] == order["run_id"]]


async def test_all_modes_together(service: Service) -> None:
    message = {"role": "user", "content": "hi"}
    outcome, order = await service.run("chat", input={"messages": [message]}, stream_mode=MODES, subgraphs=True)
    assert outcome["ended"] == "success"
    names = {name for name, _ in service.events_of(order)}
    assert names >= {"values", "updates", "messages", "messages/partial", "messages/complete", "tasks", "debug"}


async def test_breakpoint(service: Service) -> None:
    options: dict[str, Any] = {"stream_mode": ["values", "updates"], "interrupt_before": ["node"]}
    outcome, order = await service.run("echo", input={"text": "x"}, **options)
    assert outcome["ended"] == "interrupted"
    assert outcome["state"]["next"] == ["node"]
    assert json.loads(outcome["output"]) == {"text": "x", "log": [], "__interrupt__": []}
    assert service.events_of(order)[-2:] == [("values", {"__interrupt__": []}), ("updates", {"__interrupt__": []})]
    outcome, _ = await service.run("echo", order["thread_id"], input=None)
    assert outcome["ended"] == "success" and json.loads(outcome["output"])["text"] == "echo x"


async def test_backpressure(service: Service) -> None:
    """A run takes no further chunk while too many events are unacknowledged; other runs go on."""
    service.acknowledges = False
    order = service.start_run("many", input={"text": "x"}, stream_mode=["custom"])
    await service.wait_for(lambda _: len(service.events_of(order)) >= 40)
    outcome, _ = await service.run("echo", input={"text": "other"})
    assert outcome["ended"] == "success"
    assert len(service.events_of(order)) < 60
    service.acknowledges = True
    service.send({"type": "taken", "run_id": order["run_id"], "epoch": 1, "chars": 5_000_000})
    assert (await service.outcome(order))["ended"] == "success"
    assert len(service.events_of(order)) == 100
