"""The Python twin of graph.ts: one graph for all kinds of runs of the model test."""

import asyncio
import operator
import os
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Given(TypedDict, total=False):
    # The run whose input it was, or that gave the last answer.
    token: str
    kind: str
    # A folder. A file with the name of a token opens the door of that run, the file `all` opens every door.
    doors: str


class Made(TypedDict, total=False):
    items: Annotated[list[str], operator.add]


class State(Given, Made, total=False):
    pass


def _adds(name: str) -> Callable[[State], Awaitable[dict[str, Any]]]:
    async def add(state: State) -> dict[str, Any]:
        return {"items": [f"{state['token']}:{name}"]}

    return add


async def _door(state: State, token: str, *, unabortable: bool = False) -> None:
    """Waits until the test opens the door."""
    files = [os.path.join(state["doors"], name) for name in (token, "all")]
    while not any(map(os.path.exists, files)):
        try:
            await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            if not unabortable:
                raise


def _waits(name: str, *, unabortable: bool = False) -> Callable[[State], Awaitable[dict[str, Any]]]:
    async def wait(state: State) -> dict[str, Any]:
        await _door(state, state["token"], unabortable=unabortable)
        return {"items": [f"{state['token']}:{name}"]}

    return wait


async def _ask(state: State) -> dict[str, Any]:
    """Asks two questions, each followed by a door: several runs write on the same checkpoint."""
    first: str = interrupt("first?")
    await _door(state, first)
    second: str = interrupt("second?")
    await _door(state, second)
    return {"items": [f"{first}:q1", f"{second}:q2"], "token": second}


def _boom(_: State) -> None:
    raise TypeError("boom")


# It starts without items of its own, so that it returns only the new ones to its parent.
_child = StateGraph(State, input_schema=Given, output_schema=Made)
_child.add_node("x", _adds("x"))
_child.add_node("y", _waits("y"))
_child.add_edge(START, "x")
_child.add_edge("x", "y")
_child.add_edge("y", END)

# The first node of each kind of run.
_FIRST = {
    "chain": "a",
    "slow": "begin",
    "unabortable": "listen",
    "nested": "enter",
    "gate": "open",
    "fails": "try",
}

_graph = StateGraph(State)
for _name in ("a", "b", "c", "begin", "listen", "enter", "leave", "open", "close", "try"):
    _graph.add_node(_name, _adds(_name))
_graph.add_node("wait", _waits("wait"))
_graph.add_node("unabortable", _waits("unabortable", unabortable=True))
_graph.add_node("child", _child.compile())
_graph.add_node("ask", _ask)
_graph.add_node("boom", _boom)
# An answer to an empty thread leads nowhere, as in the other twin.
_graph.add_conditional_edges(START, lambda state: _FIRST.get(state.get("kind", ""), END), [*_FIRST.values(), END])
for _before, _after in (
    ("a", "b"),
    ("b", "c"),
    ("begin", "wait"),
    ("listen", "unabortable"),
    ("enter", "child"),
    ("child", "leave"),
    ("open", "ask"),
    ("ask", "close"),
    ("try", "boom"),
):
    _graph.add_edge(_before, _after)
graph = _graph.compile()
