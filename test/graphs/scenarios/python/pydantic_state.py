from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field


class State(BaseModel):
    topic: str = Field(description="What to write about.")
    length: float = 0


async def _shorten(state: State) -> dict[str, Any]:
    return {"length": len(state.topic)}


# The twin of the graph whose state is defined with Zod.
_graph = StateGraph(State)
_graph.add_node("shorten", _shorten)
_graph.add_edge(START, "shorten")
_graph.add_edge("shorten", END)
graph = _graph.compile()
