"""The Python twins of the graphs of this folder."""

import asyncio
import operator
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Items(TypedDict, total=False):
    n: int
    items: Annotated[list[str], operator.add]


class Done(TypedDict, total=False):
    # Path of a file.
    log: str
    dies_in: str
    done: Annotated[list[str], operator.add]


def _kill_service() -> None:
    """Kills the service, which ends this process, too."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


_passages_left = int(os.environ["FAIL_AFTER"]) if os.environ.get("FAILPOINT") == "in-step" else None


def _step(name: str) -> Callable[[Items], Awaitable[dict[str, Any]]]:
    async def step(state: Items) -> dict[str, Any]:
        global _passages_left
        if _passages_left is not None:
            _passages_left -= 1
            if _passages_left <= 0:
                _kill_service()
        await asyncio.sleep(0.005)
        return {"items": [f"{name}{state['n']}"]}

    return step


def _logged(name: str) -> Callable[[Done], dict[str, Any]]:
    def step(state: Done) -> dict[str, Any]:
        log = Path(state["log"])
        is_first = not log.exists() or name not in log.read_text()
        with log.open("a") as file:
            file.write(name)
        if is_first and state["dies_in"] == name:
            _kill_service()
        return {"done": [name]}

    return step


def _ticks(name: str) -> Callable[[Items], Awaitable[dict[str, Any]]]:
    async def step(state: Items) -> dict[str, Any]:
        write = get_stream_writer()
        for i in range(20):
            write({"n": state["n"], "step": name, "i": i})
            await asyncio.sleep(0.001)
        return {"items": [f"{name}{state['n']}"]}

    return step


async def _ask(state: Done) -> dict[str, Any]:
    first = interrupt("first?")
    # The test creates the file.
    while not os.path.exists(state["log"]):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    return {"done": [str(first), str(interrupt("second?"))]}


def _chain(schema: type, names: Sequence[str], step: Callable[[str], Any]) -> Any:
    graph = StateGraph(schema)
    for name in names:
        graph.add_node(name, step(name))
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile()


ledger = _chain(Items, "abc", _step)
steps = _chain(Done, "abc", _logged)
ticker = _chain(Items, "abcde", _ticks)
asks = _chain(Done, ["ask"], lambda _: _ask)
