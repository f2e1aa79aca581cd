"""Events in the form of the thread protocol."""

import json
from typing import Any

from service import Service


async def stream(service: Service, graph_id: str, **options: Any) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    outcome, order = await service.run(graph_id, stream_protocol="v2", stream_mode=[], **options)
    events = service.events_of(order)
    assert all(name.startswith("v2/") and isinstance(event["timestamp"], int) for name, event in events)
    return outcome, [(name.removeprefix("v2/"), event) for name, event in events]


def short(events: list[tuple[str, Any]]) -> list[str]:
    return [name.split(":")[0] for name, _ in events]


async def test_values_updates_tasks(service: Service) -> None:
    outcome, events = await stream(service, "echo", input={"text": "x"})
    assert outcome["ended"] == "success"
    assert short(events) == ["values", "tasks", "updates", "tasks", "values"]
    update = events[2][1]
    assert update["node"] == "node"
    assert update["data"] == {"node": "node", "values": {"text": "echo x", "log": ["node"]}}
    assert events[-1][1]["data"] == {"text": "echo x", "log": ["node"]} == json.loads(outcome["output"])
    assert events[3][1]["data"]["result"] == {"text": "echo x", "log": ["node"]}


async def test_messages(service: Service) -> None:
    _, events = await stream(service, "chat", input={"messages": [{"role": "user", "content": "hi"}]})
    messages = [event for name, event in events if name.startswith("messages|node:")]
    assert [message["data"]["event"] for message in messages] == [
        "message-start",
        "content-block-start",
        *["content-block-delta"] * 5,
        "content-block-finish",
        "message-finish",
    ]
    assert {message["node"] for message in messages} == {"node"}
    assert len({message["data"]["message_id"] for message in messages}) == 1
    assert messages[0]["data"]["role"] == "ai"
    assert messages[0]["data"]["metadata"]["langgraph_node"] == "node"
    assert messages[-2]["data"]["content"] == {"type": "text", "text": "hello world again"}


async def test_custom(service: Service) -> None:
    _, events = await stream(service, "custom", input={"text": "x"})
    custom = [event["data"] for name, event in events if name == "custom"]
    assert custom == [{"payload": {"number": number}} for number in range(3)]


async def test_lifecycle(service: Service) -> None:
    _, events = await stream(service, "outer", input={"text": "x"})
    lifecycle = [(name, event["data"]) for name, event in events if name.startswith("lifecycle|")]
    assert [data for _, data in lifecycle] == [
        {"event": "started", "graph_name": "sub"},
        {"event": "completed", "graph_name": "sub"},
    ]
    names = short(events)
    assert names.index("lifecycle|sub") < names.index("values|sub")


async def test_interrupt(service: Service) -> None:
    outcome, events = await stream(service, "ask_inside", input={"text": "x"})
    assert outcome["ended"] == "interrupted"
    requests = [(name, event["data"]) for name, event in events if name.startswith("input.requested")]
    ((name, request),) = requests
    assert name.startswith("input.requested|sub:")
    assert request["payload"] == request["value"] == "one?" and len(request["interrupt_id"]) == 32
    assert events[-1][0] == name
    lifecycle = [event["data"]["event"] for name, event in events if name.startswith("lifecycle|")]
    assert lifecycle == ["started", "interrupted"]
    values = [event["data"] for name, event in events if name.startswith("values")]
    assert all("__interrupt__" not in value for value in values)


async def test_breakpoint(service: Service) -> None:
    outcome, events = await stream(service, "echo", input={"text": "x"}, interrupt_before=["node"])
    assert outcome["ended"] == "interrupted" and outcome["state"]["next"] == ["node"]
    assert not [name for name, _ in events if name.startswith("input")]


async def test_failure(service: Service) -> None:
    outcome, events = await stream(service, "fail", input={"text": ""})
    assert outcome["ended"] == "error" and outcome["error"]["error"] == "ValueError"
    assert short(events)[0] == "values"
