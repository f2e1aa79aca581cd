from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service import Service

BASIC = Path(__file__).parent / "projects" / "basic"

GRAPHS = [
    "counted",
    "functional",
    "in_background",
    "own_thread",
    "remember_in_threads",
    *("echo", "five", "custom", "many", "chat", "outer", "ask", "ask_once", "ask_two", "ask_inside", "router"),
    *("sleep", "sync_sleep", "swallow", "block", "fail", "endless", "sync_exit", "talk", "remember"),
    *("sync_subgraph", "sync_subgraph_in_loop", "show_config", "token", "deltas", "fork", "delta_input", "traced"),
]


async def start_with_graphs() -> Service:
    service = Service()
    await service.start()
    loaded = await service.load(BASIC, {name: f"graphs.py:{name}" for name in GRAPHS})
    assert loaded["failures"] == {}
    return service


@pytest.fixture
async def own_service() -> AsyncIterator[Service]:
    """A service whose host has loaded the graphs of projects/basic, for a test that ends the host or changes it."""
    service = await start_with_graphs()
    try:
        yield service
    finally:
        await service.stop()


@pytest.fixture(scope="session")
async def kept() -> AsyncIterator[list[Service]]:
    """The service that the next test may use, if any: a host takes a second of CPU time to import LangGraph."""
    services: list[Service] = []
    yield services
    for service in services:
        await service.stop()


@pytest.fixture
async def service(kept: list[Service]) -> AsyncIterator[Service]:
    """A service whose host has loaded the graphs of projects/basic and executed the runs of earlier tests."""
    service = kept.pop() if kept else await start_with_graphs()
    service.forget()
    yield service
    if service.is_idle:
        kept.append(service)
    else:
        await service.stop()


@pytest.fixture
async def bare_service() -> AsyncIterator[Service]:
    """A service whose host has loaded nothing yet."""
    service = Service()
    await service.start()
    try:
        yield service
    finally:
        await service.stop()
