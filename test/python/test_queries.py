"""Queries about graphs and states."""

import json
from typing import Any

import pytest

from service import Service


async def test_state(service: Service) -> None:
    _, order = await service.run("ask_inside", input={"text": "x"}, config={"metadata": {"k": "v"}})
    checkpoint = {"thread_id": order["thread_id"]}
    state = json.loads(await service.query("state", "ask_inside", checkpoint=checkpoint, subgraphs=False))
    assert state["values"] == {"text": "x", "log": []} and state["next"] == ["sub"]
    assert state["checkpoint"]["thread_id"] == order["thread_id"] and state["checkpoint"]["checkpoint_id"]
    assert state["parent_checkpoint"]["checkpoint_id"] and state["created_at"]
    assert state["metadata"]["run_id"] == order["run_id"] and state["metadata"]["k"] == "v"
    (task,) = state["tasks"]
    assert task["name"] == "sub" and task["state"] is None and task["error"] is None and task["result"] is None
    assert task["checkpoint"]["checkpoint_ns"] == f"sub:{task['id']}"
    (interrupt,) = state["interrupts"]
    assert interrupt["value"] == "one?" and task["interrupts"] == [interrupt]
    state = json.loads(await service.query("state", "ask_inside", checkpoint=checkpoint, subgraphs=True))
    inner = state["tasks"][0]["state"]
    assert inner["next"] == ["inner_node"] and inner["interrupts"] == [interrupt]
    by_namespace = json.loads(
        await service.query(
            "state", "ask_inside", checkpoint={**checkpoint, "checkpoint_ns": task["checkpoint"]["checkpoint_ns"]}
        )
    )
    assert by_namespace["next"] == ["inner_node"]
    assert "__threadmill" not in json.dumps(state)


async def test_select(service: Service) -> None:
    _, order = await service.run("echo", input={"text": "x"})
    checkpoint = {"thread_id": order["thread_id"]}
    select = ["next", "values.text", "values.nothing"]
    state = json.loads(await service.query("state", "echo", checkpoint=checkpoint, select=select))
    assert state == {"next": [], "values": {"text": "echo x"}}


async def test_state_of_an_empty_thread(service: Service) -> None:
    state = json.loads(await service.query("state", "echo", checkpoint={"thread_id": "none"}))
    assert state["values"] == {} and state["next"] == [] and state["checkpoint"] is None


async def test_summary_without_a_run(service: Service) -> None:
    _, first = await service.run("echo", input={"text": "1"})
    _, second = await service.run("echo", first["thread_id"], input={"text": "2"})
    checkpoint = {"thread_id": first["thread_id"]}
    summary = await service.query("summary", "echo", checkpoint=checkpoint)
    assert json.loads(summary["values"])["text"] == "echo 2"
    summary = await service.query("summary", "echo", checkpoint=checkpoint, without=second["run_id"])
    assert json.loads(summary["values"])["text"] == "echo 1"
    assert summary["next"] == [] and summary["interrupts"] == "{}"


async def test_history(service: Service) -> None:
    _, order = await service.run("five", input={"text": "x"})
    query: dict[str, Any] = {"checkpoint": {"thread_id": order["thread_id"]}, "limit": 100}
    page = await service.query("history", "five", **query)
    states = json.loads(f"[{page['states']}]")
    assert page["count"] == len(states) == 7 and "before" not in page
    assert [state["next"] for state in states] == [[], ["e"], ["d"], ["c"], ["b"], ["a"], ["__start__"]]
    page = await service.query("history", "five", **{**query, "limit": 2})
    assert page["count"] == 2
    before = states[1]["checkpoint"]["checkpoint_id"]
    page = await service.query("history", "five", **{**query, "limit": 1}, before=before)
    assert json.loads(page["states"]) == states[2]
    page = await service.query("history", "five", **query, metadata={"source": "input"})
    assert page["count"] == 1


async def test_history_pages_are_limited(service: Service) -> None:
    thread_id = None
    for _ in range(2):
        _, order = await service.run("echo", thread_id, input={"text": "x" * 3_000_000})
        thread_id = order["thread_id"]
    query: dict[str, Any] = {"checkpoint": {"thread_id": thread_id}, "limit": 100}
    counts = []
    before: dict[str, Any] = {}
    while True:
        page = await service.query("history", "echo", **query, **before)
        counts.append(page["count"])
        if "before" not in page:
            break
        assert page["before"] == json.loads(f"[{page['states']}]")[-1]["checkpoint"]["checkpoint_id"]
        before = {"before": page["before"]}
    assert sum(counts) == 6 and len(counts) > 1


async def test_update(service: Service) -> None:
    _, order = await service.run("five", input={"text": "x"}, interrupt_before=["b"])
    checkpoint = {"thread_id": order["thread_id"]}
    before = len(service.rows.checkpoints)
    update = {"values": {"log": ["update"], "text": "new"}, "as_node": "c"}
    result = await service.query(
        "update", "five", checkpoint=checkpoint, supersteps=[[update]], config={"metadata": {"k": "v"}}
    )
    assert len(service.rows.checkpoints) == before
    assert result["base"] == service.rows.head(order["thread_id"])["checkpoint_id"]  # type: ignore[index]
    (put,) = result["puts"]
    assert result["checkpoint"] == {**checkpoint, "checkpoint_ns": "", "checkpoint_id": put["checkpoint_id"]}
    metadata = json.loads(put["metadata"])
    assert metadata["source"] == "update" and metadata["k"] == "v" and metadata["graph_id"] == "five"
    assert json.loads(result["state"]["values"]) == {"text": "new", "log": ["a", "update"]}
    assert result["state"]["next"] == ["d"]
    for row in result["puts"]:
        service.rows.put(row)
    for row in result["writes"]:
        service.rows.put_writes(row)
    outcome, _ = await service.run("five", order["thread_id"], input=None)
    assert json.loads(outcome["output"]) == {"text": "new", "log": ["a", "update", "d", "e"]}


async def test_update_of_an_empty_thread_in_supersteps(service: Service) -> None:
    supersteps = [
        [{"values": {"text": "in"}, "as_node": "__start__"}],
        [{"values": {"log": ["a"]}, "as_node": "a"}],
        [{"values": {"log": ["b"]}, "as_node": "b"}],
    ]
    result = await service.query("update", "five", checkpoint={"thread_id": "new"}, supersteps=supersteps)
    assert "base" not in result and len(result["puts"]) == 3
    assert json.loads(result["state"]["values"]) == {"text": "in", "log": ["a", "b"]}
    assert result["state"]["next"] == ["c"]


async def test_update_with_a_command(service: Service) -> None:
    _, order = await service.run("router", input={"text": "x"})
    update = {"command": {"goto": {"node": "target", "input": {"text": "T"}}, "update": {"log": ["c"]}}}
    result = await service.query(
        "update",
        "router",
        checkpoint={"thread_id": order["thread_id"]},
        supersteps=[[{**update, "as_node": "decide"}]],
    )
    assert result["state"]["next"] == ["target"]


async def test_update_of_a_subgraph(service: Service) -> None:
    _, order = await service.run("ask_inside", input={"text": "x"})
    checkpoint = {"thread_id": order["thread_id"]}
    state = json.loads(await service.query("state", "ask_inside", checkpoint=checkpoint))
    namespace = state["tasks"][0]["checkpoint"]["checkpoint_ns"]
    result = await service.query(
        "update",
        "ask_inside",
        checkpoint={**checkpoint, "checkpoint_ns": namespace},
        supersteps=[[{"values": {"log": ["in"]}, "as_node": "inner_node"}]],
    )
    assert {put["checkpoint_ns"] for put in result["puts"]} >= {namespace}


async def test_failing_update(service: Service) -> None:
    with pytest.raises(RuntimeError, match="InvalidUpdateError: Node nothing does not exist"):
        await service.query(
            "update", "echo", checkpoint={"thread_id": "new"}, supersteps=[[{"values": {}, "as_node": "nothing"}]]
        )


async def test_drawing(service: Service) -> None:
    drawing = json.loads(await service.query("drawing", "outer", xray=False))
    assert [node["id"] for node in drawing["nodes"]] == ["__start__", "before", "sub", "__end__"]
    drawing = json.loads(await service.query("drawing", "outer", xray=1))
    assert "sub:inner_node" in [node["id"] for node in drawing["nodes"]]


async def test_schemas(service: Service) -> None:
    schemas = await service.query("schemas", "chat")
    assert schemas["input"]["is_whole"] and "messages" in schemas["input"]["schema"]["properties"]
    schemas = await service.query("schemas", "echo")
    for name in ("input", "output", "state"):
        assert set(schemas[name]["schema"]["properties"]) == {"text", "log"}, name
    assert schemas["config"] == {"schema": None, "is_whole": False}
    found = await service.query("subgraphs", "outer", recurse=True)
    assert list(found) == ["sub"] and found["sub"]["input"]["is_whole"]


async def test_unknown_kind(service: Service) -> None:
    with pytest.raises(RuntimeError, match="Python hosts do not support queries of the kind weather"):
        await service.query("weather", "echo")
