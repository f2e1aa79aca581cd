import asyncio
import contextlib
import os
from typing import Any

from chain import Steps, adds
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class Door(Steps, total=False):
    door: str | None


def _is_open(door: str | None) -> bool:
    return door is not None and os.path.exists(door)


async def until_open(door: str | None) -> None:
    # The test creates the file.
    while not _is_open(door):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def _wait(state: Door) -> dict[str, Any]:
    """Waits until the file `door` exists, or without one until the run is cancelled: tests decide when it ends."""
    await until_open(state.get("door"))
    return {"steps": ["end"]}


_slow = StateGraph(Door)
_slow.add_node("begin", adds("begin"))
_slow.add_node("wait", _wait)
_slow.add_edge(START, "begin")
_slow.add_edge("begin", "wait")
_slow.add_edge("wait", END)
slow = _slow.compile()


async def _ignore_cancel(_: Steps) -> dict[str, Any]:
    """Ignores the cancel once it has written "unabortable", and never ends."""
    get_stream_writer()("unabortable")
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


_unabortable = StateGraph(Steps)
_unabortable.add_node("begin", adds("begin"))
_unabortable.add_node("wait", _ignore_cancel)
_unabortable.add_edge(START, "begin")
_unabortable.add_edge("begin", "wait")
_unabortable.add_edge("wait", END)
unabortable = _unabortable.compile()


async def _ask(state: Door) -> dict[str, Any]:
    door = state.get("door")
    first = interrupt("first?")
    await until_open(door)
    second = interrupt("second?")
    await until_open(door and f"{door}-second")
    return {"steps": [str(first), str(second)]}


# Asks, waits for its door, asks again, and waits for a second door: all its runs write to one checkpoint.
_slowgate = StateGraph(Door)
_slowgate.add_node("begin", adds("begin"))
_slowgate.add_node("ask", _ask)
_slowgate.add_edge(START, "begin")
_slowgate.add_edge("begin", "ask")
_slowgate.add_edge("ask", END)
slowgate = _slowgate.compile()

_inner = StateGraph(Door)
_inner.add_node("in", adds("in"))
_inner.add_node("wait", _wait)
_inner.add_edge(START, "in")
_inner.add_edge("in", "wait")
_inner.add_edge("wait", END)

# Waits within a subgraph.
_nested = StateGraph(Door)
_nested.add_node("begin", adds("begin"))
_nested.add_node("inner", _inner.compile())
_nested.add_edge(START, "begin")
_nested.add_edge("begin", "inner")
_nested.add_edge("inner", END)
nested = _nested.compile()
