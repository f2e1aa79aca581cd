from typing import Any

from chain import Steps, adds
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

# Two nodes, as in the JavaScript twin.
_grandchild = StateGraph(Steps)
_grandchild.add_node("deep", adds("deep"))
_grandchild.add_node("deeper", adds("deeper"))
_grandchild.add_edge(START, "deep")
_grandchild.add_edge("deep", "deeper")
_grandchild.add_edge("deeper", END)


def _ask(state: Steps) -> dict[str, Any]:
    """Asks when the input says so, so that a thread can be read while it is paused within the subgraph."""
    return {"steps": [f"answer {interrupt('go on?')}"]} if "pause" in state["steps"] else {}


_child = StateGraph(Steps)
_child.add_node("inner", adds("inner"))
_child.add_node("ask", _ask)
_child.add_node("grandchild", _grandchild.compile())
_child.add_edge(START, "inner")
_child.add_edge("inner", "ask")
_child.add_edge("ask", "grandchild")
_child.add_edge("grandchild", END)

# A graph with a subgraph that has a subgraph.
_parent = StateGraph(Steps)
_parent.add_node("before", adds("before"))
_parent.add_node("child", _child.compile())
_parent.add_node("after", adds("after"))
_parent.add_edge(START, "before")
_parent.add_edge("before", "child")
_parent.add_edge("child", "after")
_parent.add_edge("after", END)
parent = _parent.compile()
