"""Runs: states, checkpoints and ends."""

import json
from typing import Any

from conftest import BASIC
from service import Service


def state_of(outcome: dict[str, Any]) -> Any:
    return json.loads(outcome["state"]["values"])


async def test_handshake(bare_service: Service) -> None:
    hello = await bare_service.wait_for(lambda message: message["type"] == "hello")
    assert hello["protocol"] == 1
    assert hello["pid"] == bare_service.process.pid
    assert hello["python"].startswith("3.")
    assert hello["packages"]["langgraph"].startswith("1.")


async def test_echo(service: Service) -> None:
    outcome, order = await service.run("echo", input={"text": "hi"})
    assert outcome["ended"] == "success"
    assert json.loads(outcome["output"]) == {"text": "echo hi", "log": ["node"]}
    assert state_of(outcome) == {"text": "echo hi", "log": ["node"]}
    assert outcome["state"]["next"] == [] and outcome["state"]["interrupts"] == "{}"
    assert service.events_of(order)[-1] == ("values", {"text": "echo hi", "log": ["node"]})
    types = [message["type"] for message in service.received]
    assert types.index("started") < types.index("events")
    # A run with one node waits for no commit.
    assert [message["request"]["op"] for message in service.requests] == []
    metadata = [json.loads(row["metadata"]) for row in service.rows.checkpoints.values()]
    assert [one["source"] for one in metadata] == ["input", "loop", "loop"]
    assert all(one["run_id"] == order["run_id"] and one["run_attempt"] == 1 for one in metadata)


async def test_thread_continues(service: Service) -> None:
    _, order = await service.run("echo", input={"text": "1"})
    outcome, _ = await service.run("echo", order["thread_id"], input={"text": "2"})
    assert state_of(outcome) == {"text": "echo 2", "log": ["node", "node"]}


async def test_five_nodes_wait_for_four_commits(service: Service) -> None:
    outcome, _ = await service.run("five", input={"text": "x"})
    assert state_of(outcome)["log"] == ["a", "b", "c", "d", "e"]
    assert [message["request"]["op"] for message in service.requests] == ["put"] * 4


async def test_async_durability_waits_for_nothing(service: Service) -> None:
    for durability in ("async", "exit"):
        outcome, _ = await service.run("five", input={"text": "x"}, durability=durability)
        assert outcome["ended"] == "success"
    assert service.requests == []


async def test_sync_calls_of_graphs(service: Service) -> None:
    for graph in ("sync_subgraph", "sync_subgraph_in_loop"):
        outcome, _ = await service.run(graph, input={"text": "x"})
        assert state_of(outcome)["log"] == ["node"], outcome


async def test_fork_from_a_checkpoint(service: Service) -> None:
    _, order = await service.run("five", input={"text": "x"})
    thread_id = order["thread_id"]
    page = await service.query("history", "five", checkpoint={"thread_id": thread_id}, limit=10)
    earlier = next(state for state in json.loads(f"[{page['states']}]") if state["next"] == ["d"])
    config = {"configurable": {"checkpoint_id": earlier["checkpoint"]["checkpoint_id"]}}
    outcome, fork = await service.run("five", thread_id, config=config, stream_mode=["updates"])
    assert outcome["ended"] == "success"
    assert [list(update) for update in service.events_of(fork, "updates")] == [["d"], ["e"]]
    assert state_of(outcome)["log"] == ["a", "b", "c", "d", "e"]


async def test_end_before_load(bare_service: Service) -> None:
    await bare_service.wait_for(lambda message: message["type"] == "hello")
    bare_service.send({"type": "end", "grace_ms": 1000})
    assert await bare_service.exit_code() == 0


async def test_concurrent_runs(service: Service) -> None:
    orders = [service.start_run("five", input={"text": str(number)}) for number in range(10)]
    for number, order in enumerate(orders):
        outcome = await service.outcome(order)
        assert state_of(outcome) == {"text": str(number), "log": ["a", "b", "c", "d", "e"]}


async def test_messages_between_loading(bare_service: Service) -> None:
    """Messages that arrive while the graphs are being loaded are processed afterwards."""
    bare_service.put_delay = 0.01
    loading = bare_service.load(BASIC, {"echo": "graphs.py:echo"})
    order = bare_service.start_run("echo", input={"text": "early"})
    # The order is sent before the setup, as after a reload.
    await loading
    assert (await bare_service.outcome(order))["ended"] == "success"
