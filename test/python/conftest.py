from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service import Service

BASIC = Path(__file__).parent / "projects" / "basic"

GRAPHS = [
    *("echo", "five", "custom", "many", "chat", "outer", "ask", "ask_once", "ask_two", "ask_inside", "router"),
    *("sleep", "sync_sleep", "swallow", "block", "fail", "endless", "sync_exit", "talk", "remember"),
    *("sync_subgraph", "sync_subgraph_in_loop", "show_config", "token", "deltas", "fork", "delta_input", "traced"),
]


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service whose host has loaded the graphs of projects/basic."""
    service = Service()
    await service.start()
    try:
        loaded = await service.load(BASIC, {name: f"graphs.py:{name}" for name in GRAPHS})
        assert loaded["failures"] == {}
        yield service
    finally:
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
