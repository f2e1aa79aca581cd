"""A graph whose node harms its host, by kind."""

from typing import Any

from chain import Steps
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph

TOO_LARGE = 70_000_000


class Poison(Steps, total=False):
    kind: str


async def spin(_: Poison) -> None:
    """Computes in the event loop, and never returns."""
    get_stream_writer()("started")
    while True:
        pass


def spin_in_thread(_: Poison) -> None:
    get_stream_writer()("started")
    while True:
        pass


async def memory(_: Poison) -> dict[str, Any]:
    return {"steps": [str(len([bytes(10_000_000) for _ in range(1_000)]))]}


async def output(_: Poison) -> dict[str, Any]:
    return {"steps": ["x" * TOO_LARGE]}


async def event(_: Poison) -> None:
    get_stream_writer()("x" * TOO_LARGE)


_graph = StateGraph(Poison)
_nodes = {node.__name__: node for node in (spin, spin_in_thread, memory, output, event)}
for _name, _node in _nodes.items():
    _graph.add_node(_name, _node)
_graph.add_conditional_edges(START, lambda state: state["kind"], list(_nodes))
poison = _graph.compile()
