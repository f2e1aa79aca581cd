"""Cancel, drain, errors, crashes and the end of the service."""

import asyncio
import json
import os
import signal
import time
from typing import Any

import pytest

from conftest import BASIC
from service import Service


@pytest.fixture
def service(own_service: Service) -> Service:
    """Most of these tests end the host, or leave code in it."""
    return own_service


async def aborted(service: Service, graph_id: str, **options: Any) -> tuple[dict[str, Any], float]:
    """Starts a run, aborts it in its node, and returns the outcome and the seconds from the abort to it."""
    order = service.start_run(graph_id, input={"text": "x"}, stream_mode=["custom"], **options)
    await service.wait_for_event(order, "custom")
    started = time.monotonic()
    service.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "cancelled"})
    outcome = await service.outcome(order)
    return outcome, time.monotonic() - started


async def test_cancel_async_node(service: Service) -> None:
    outcome, seconds = await aborted(service, "sleep")
    assert outcome["ended"] == "aborted" and seconds < 0.5
    assert json.loads(outcome["state"]["values"])["text"] == "x"
    assert [log["message"] for log in service.logs()] == ["cleaned up"]


async def test_cancel_with_events(service: Service) -> None:
    order = service.start_run("sleep", input={"text": "x"}, stream_mode=["events", "custom"])
    await service.wait_for_event(order, "custom")
    service.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "timeout"})
    assert (await service.outcome(order, timeout=3))["ended"] == "aborted"


async def test_cancel_holds_done_until_sync_node_has_ended(service: Service) -> None:
    outcome, seconds = await aborted(service, "sync_sleep")
    assert outcome["ended"] == "aborted" and 0.8 < seconds < 5
    assert json.loads(outcome["state"]["values"])["text"] == "x"


async def test_success_does_not_wait_for_a_thread_of_the_project(service: Service) -> None:
    order = service.start_run("in_background", input={"text": "x"})
    assert (await service.outcome(order, timeout=5))["ended"] == "success"


async def test_pong_names_abandoned_runs(service: Service) -> None:
    order = service.start_run("sync_sleep", input={"text": "x"}, stream_mode=["custom"])
    await service.wait_for_event(order, "custom")
    service.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "cancelled"})
    await asyncio.sleep(0.2)
    service.send({"type": "ping", "id": 1})
    pong = await service.wait_for(lambda message: message["type"] == "pong")
    assert pong["lag_ms"] < 1000 and pong["rss_mb"] > 20
    assert [one["run_id"] for one in pong["abandoned"]] == [order["run_id"]]
    assert pong["abandoned"][0]["for_ms"] >= 150
    await service.outcome(order)
    service.send({"type": "ping", "id": 2})
    pong = await service.wait_for(lambda message: message["type"] == "pong" and message["id"] == 2)
    assert pong["abandoned"] == []


async def test_node_that_swallows_the_cancel(service: Service) -> None:
    outcome, seconds = await aborted(service, "swallow")
    assert outcome["ended"] == "aborted" and 0.3 < seconds < 3


async def test_abort_before_start(service: Service) -> None:
    order = service.start_run("sleep", input={"text": "x"})
    service.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "cancelled"})
    assert (await service.outcome(order, timeout=3))["ended"] == "aborted"


async def test_errors(service: Service) -> None:
    expected = {
        "": ("ValueError", "it broke \ufffd"),
        "system_exit": ("SystemExit", "3"),
        "keyboard": ("KeyboardInterrupt", "KeyboardInterrupt()"),
    }
    neighbour = service.start_run("five", input={"text": "x"})
    for text, (name, message) in expected.items():
        outcome, order = await service.run("fail", input={"text": text})
        assert outcome["ended"] == "error"
        assert outcome["error"] == {"error": name, "message": message}
        assert json.loads(outcome["state"]["values"])["text"] == text
        log = await service.wait_for(
            lambda entry, run_id=order["run_id"]: (
                entry["type"] == "log" and entry.get("run", {}).get("run_id") == run_id
            )
        )
        assert log["level"] == "error" and log["message"] == "run failed"
        traceback = json.loads(log["fields"])["traceback"]
        assert "graphs.py" in traceback and "threadmill_host" not in traceback
    outcome, _ = await service.run("sync_exit", input={"text": "x"})
    assert outcome["error"] == {"error": "SystemExit", "message": "4"}
    assert (await service.outcome(neighbour))["ended"] == "success"


async def test_recursion_limit(service: Service) -> None:
    outcome, _ = await service.run("endless", input={"text": "x"}, config={"recursion_limit": 4})
    assert outcome["ended"] == "error" and outcome["error"]["error"] == "GraphRecursionError"
    assert "Recursion limit of 4" in outcome["error"]["message"]


async def test_unknown_graph(service: Service) -> None:
    outcome, _ = await service.run("nothing", input={"text": "x"})
    assert outcome["ended"] == "error" and outcome["error"]["message"] == 'Graph "nothing" not found.'


async def test_memory_limit(bare_service: Service) -> None:
    await bare_service.load(BASIC, {"fail": "graphs.py:fail", "echo": "graphs.py:echo"}, memory_mb=512)
    outcome, _ = await bare_service.run("fail", input={"text": "memory"})
    assert outcome["ended"] == "error" and outcome["error"]["error"] == "MemoryError"
    outcome, _ = await bare_service.run("echo", input={"text": "x"})
    assert outcome["ended"] == "success"


@pytest.mark.parametrize(("text", "code"), [("exit", 7), ("segfault", -signal.SIGSEGV)])
async def test_host_death(service: Service, text: str, code: int) -> None:
    service.start_run("fail", input={"text": text})
    await service.wait_for(lambda message: message["type"] == "exit")
    assert await service.exit_code() == code
    # The message was sent before the graph ran.
    assert [message["type"] for message in service.received].count("started") == 1
    if text == "segfault" and service.process.stderr:
        assert b"Segmentation fault" in service.process.stderr.read()


async def test_end(service: Service) -> None:
    service.send({"type": "end", "grace_ms": 2000})
    assert await service.exit_code() == 0


async def test_end_with_running_runs(service: Service) -> None:
    order = service.start_run("sleep", input={"text": "x"}, stream_mode=["custom"])
    await service.wait_for_event(order, "custom")
    service.send({"type": "end", "grace_ms": 5000})
    assert await service.exit_code() == 0
    assert "cleaned up" in [log["message"] for log in service.logs()]


@pytest.mark.parametrize("graph_id", ["echo", "block", "sleep"])
async def test_end_of_the_service(service: Service, graph_id: str) -> None:
    if graph_id != "echo":
        order = service.start_run(graph_id, input={"text": "20"}, stream_mode=["custom"])
        await service.wait_for_event(order, "custom")
        await asyncio.sleep(0.3)
    started = time.monotonic()
    service.writer.close()
    service.socket.close()
    assert await service.exit_code() == -signal.SIGKILL
    assert time.monotonic() - started < 1


async def test_blocked_loop_is_reported_once(service: Service) -> None:
    order = service.start_run("block", input={"text": "2.2"}, stream_mode=["custom"])
    await service.wait_for_event(order, "custom")
    for ping in range(16):
        service.send({"type": "ping", "id": ping})
        await asyncio.sleep(0.15)
    await service.outcome(order)
    (log,) = service.logs()
    assert log["level"] == "warn" and log["run"] == {"run_id": order["run_id"], "epoch": 1}
    assert log["message"].startswith("The event loop is blocked by graphs.py:")
    assert log["message"].endswith(" in _block; use an async client or await asyncio.to_thread(...)")


async def test_cut_and_broken_frames(service: Service) -> None:
    frame = json.dumps([{"type": "ping", "id": 5}, {"type": "something new"}]).encode() + b"\n"
    for byte in frame:
        service.writer.write(bytes([byte]))
        await service.writer.drain()
    await service.wait_for(lambda message: message["type"] == "pong")
    service.send({"type": "something new"})
    service.send({"type": "ping", "id": 6})
    await service.wait_for(lambda message: message["type"] == "pong" and message["id"] == 6)
    assert [log["message"] for log in service.logs()] == ["unknown message of the service ignored"]
    service.writer.write(b"no json\n")
    assert await service.exit_code() == 1


async def test_too_large_state(service: Service) -> None:
    outcome, _ = await service.run("echo", input={"text": "x" * 50_000_000})
    assert outcome["ended"] == "error"
    assert outcome["error"]["message"].endswith("MB; at most 64 MB can be stored.")
    assert os.kill(service.process.pid, 0) is None
