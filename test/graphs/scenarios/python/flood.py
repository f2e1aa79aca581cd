from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    lengths: list[int]


async def _write(state: State) -> dict[str, Any]:
    """Writes custom events at once, each with a text of so many characters."""
    writer = get_stream_writer()
    for index, length in enumerate(state["lengths"]):
        writer({"index": index, "text": "x" * length})
    return {}


_flood = StateGraph(State)
_flood.add_node("write", _write)
_flood.add_edge(START, "write")
_flood.add_edge("write", END)
flood = _flood.compile()
