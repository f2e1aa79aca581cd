import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class Steps(TypedDict, total=False):
    """A list that every node adds to: the order of its items shows what ran, and on which state."""

    steps: Annotated[list[str], operator.add]


def adds(name: str) -> Callable[[Any], Awaitable[dict[str, list[str]]]]:
    async def add(_: Any) -> dict[str, list[str]]:
        get_stream_writer()({"at": name})
        return {"steps": [name]}

    return add


# a, b and c, one after the other: five checkpoints with those of the input and the start.
_chain = StateGraph(Steps)
for _name in ("a", "b", "c"):
    _chain.add_node(_name, adds(_name))
_chain.add_edge(START, "a")
_chain.add_edge("a", "b")
_chain.add_edge("b", "c")
_chain.add_edge("c", END)
chain = _chain.compile()


def _turn_or_end(state: Steps) -> str:
    return "turn" if len(state["steps"]) < 12 else END


# Repeats its node until `steps` has twelve items. With a low recursion limit, it does not end.
_loop = StateGraph(Steps)
_loop.add_node("turn", adds("turn"))
_loop.add_edge(START, "turn")
_loop.add_conditional_edges("turn", _turn_or_end, ["turn", END])
loop = _loop.compile()
