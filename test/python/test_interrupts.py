"""Interrupts, resume values, commands and attempts."""

import json
from typing import Any

import pytest

from service import Service


def log_of(outcome: dict[str, Any]) -> Any:
    return json.loads(outcome["state"]["values"]).get("log")


def interrupts_of(outcome: dict[str, Any]) -> list[Any]:
    return [one for task in json.loads(outcome["state"]["interrupts"]).values() for one in task]


async def test_interrupt_and_resume(service: Service) -> None:
    outcome, order = await service.run("ask", input={"text": "x"}, stream_mode=["values", "updates"])
    assert outcome["ended"] == "interrupted"
    (opened,) = interrupts_of(outcome)
    assert opened["value"] == {"question": 1} and len(opened["id"]) == 32
    assert json.loads(outcome["output"]) == {"text": "x", "log": [], "__interrupt__": [opened]}
    assert service.events_of(order, "updates")[-1] == {"__interrupt__": [opened]}
    assert service.events_of(order, "values")[-1] == {"text": "x", "log": [], "__interrupt__": [opened]}
    thread_id = order["thread_id"]
    outcome, _ = await service.run("ask", thread_id, command={"resume": "a"})
    assert [one["value"] for one in interrupts_of(outcome)] == [{"question": 2}]
    outcome, _ = await service.run("ask", thread_id, command={"resume": "b"})
    assert outcome["ended"] == "success" and log_of(outcome) == ["a", "b"]
    assert interrupts_of(outcome) == []


async def test_resume_with_any_value(service: Service) -> None:
    for value in (None, 0, False, "", [], {"a": 1}):
        _, order = await service.run("ask_once", input={"text": "x"})
        outcome, _ = await service.run("ask_once", order["thread_id"], command={"resume": value})
        assert outcome["ended"] == "success", (value, outcome)
        assert log_of(outcome) == [value]


async def test_resume_map(service: Service) -> None:
    outcome, order = await service.run("ask_two", input={"text": "x"})
    opened = {one["value"]: one["id"] for one in interrupts_of(outcome)}
    assert set(opened) == {"left?", "right?"}
    outcome, _ = await service.run("ask_two", order["thread_id"], command={"resume": "plain"})
    assert outcome["ended"] == "error" and outcome["error"]["error"] == "RuntimeError"
    outcome, _ = await service.run("ask_two", order["thread_id"], command={"resume": {opened["right?"]: "R"}})
    assert outcome["ended"] == "interrupted"
    assert [one["value"] for one in interrupts_of(outcome)] == ["left?"]
    outcome, _ = await service.run("ask_two", order["thread_id"], command={"resume": {opened["left?"]: "L"}})
    assert outcome["ended"] == "success" and sorted(log_of(outcome)) == ["L", "R"]


async def test_interrupt_in_subgraph(service: Service) -> None:
    outcome, order = await service.run("ask_inside", input={"text": "x"}, subgraphs=True)
    assert outcome["ended"] == "interrupted" and outcome["state"]["next"] == ["sub"]
    outcome, _ = await service.run("ask_inside", order["thread_id"], command={"resume": "yes"})
    assert outcome["ended"] == "success" and log_of(outcome) == ["yes"]
    namespaces = {key[1].split(":")[0] for key in service.rows.checkpoints}
    assert namespaces == {"", "sub"}


async def test_commands(service: Service) -> None:
    outcome, order = await service.run("router", input={"text": "x"})
    assert log_of(outcome) == ["decide", "x"]
    thread_id = order["thread_id"]
    command = {"goto": {"node": "target", "input": {"text": "sent"}}, "update": {"log": ["update"]}}
    outcome, _ = await service.run("router", thread_id, command=command)
    assert log_of(outcome) == ["decide", "x", "update", "sent"]
    outcome, _ = await service.run("router", thread_id, command={"goto": ["target"]})
    assert log_of(outcome)[-1] == "x"


async def test_resumed_attempt_continues(service: Service) -> None:
    """A later claim of a run continues from the run's own checkpoint with input None."""
    order = service.start_run("five", input={"text": "x"}, stream_mode=["updates"])
    await service.wait_for_event(order, "updates")
    service.send({"type": "drain", "run_id": order["run_id"], "epoch": 1})
    outcome = await service.outcome(order)
    assert outcome["ended"] == "drained"
    done = len(log_of(outcome))
    assert 1 <= done < 5
    options: dict[str, Any] = {"run_id": order["run_id"], "epoch": 2, "input": {"text": "x"}}
    outcome, _ = await service.run("five", order["thread_id"], **options)
    assert outcome["ended"] == "success" and log_of(outcome) == ["a", "b", "c", "d", "e"]


async def test_consumed_resume_is_not_used_again(service: Service) -> None:
    """The resume value of a crashed attempt does not answer the next interrupt."""
    _, order = await service.run("ask", input={"text": "x"})
    thread_id = order["thread_id"]
    _, resumed = await service.run("ask", thread_id, command={"resume": "A"})
    head = service.rows.head(thread_id)
    assert head is not None
    prior = [{"task_id": write["task_id"], "channel": write["channel"]} for write in head["writes"]]
    options: dict[str, Any] = {"run_id": resumed["run_id"], "epoch": 2, "command": {"resume": "A"}}
    outcome, _ = await service.run("ask", thread_id, prior_writes=prior, **options)
    assert outcome["ended"] == "interrupted"
    assert [one["value"] for one in interrupts_of(outcome)] == [{"question": 2}]
    outcome, _ = await service.run("ask", thread_id, command={"resume": "B"})
    assert log_of(outcome) == ["A", "B"]


@pytest.mark.parametrize(("kind", "node"), [("interrupt_before", "c"), ("interrupt_after", "b")])
async def test_lost_run_stays_at_its_breakpoint(service: Service, kind: str, node: str) -> None:
    options: dict[str, Any] = {"input": {"text": "x"}, kind: [node]}
    stopped, order = await service.run("five", **options)
    assert log_of(stopped) == ["a", "b"]
    again = {**options, "run_id": order["run_id"], "epoch": 2}
    outcome, _ = await service.run("five", order["thread_id"], **again)
    assert outcome["ended"] == "interrupted" and log_of(outcome) == ["a", "b"]
    assert outcome["output"] == stopped["output"]
    # The next run passes it.
    outcome, _ = await service.run("five", order["thread_id"], **{kind: [node]})
    assert outcome["ended"] == "success" and log_of(outcome) == ["a", "b", "c", "d", "e"]


async def test_token(service: Service) -> None:
    outcome, order = await service.run("token", input={"text": "x"})
    (opened,) = interrupts_of(outcome)
    assert opened["value"]["auth_url"] == "https://auth.test/1" and opened["value"]["scopes"] == ["repo"]
    service.tokens["github"] = {"token": "secret"}
    thread_id = order["thread_id"]
    outcome, _ = await service.run("token", thread_id, command={"resume": "granted"})
    assert [one["value"] for one in interrupts_of(outcome)] == ["and?"], outcome
    outcome, _ = await service.run("token", thread_id, command={"resume": "done"})
    assert log_of(outcome) == ["secret", "done"]
