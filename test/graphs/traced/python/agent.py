import os
import time
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.graph import END, START, MessagesState, StateGraph
from langsmith import traceable


@traceable(run_type="tool", name="search")
def _search(query: str) -> list[str]:
    return [f"a page about {query}"]


def _answer(state: MessagesState) -> dict[str, Any]:
    """Searches with a function of LangSmith's client, and asks a model. Runs in a thread."""
    _search("tides")
    usage = UsageMetadata(input_tokens=7, output_tokens=2, total_tokens=9)
    model = GenericFakeChatModel(messages=iter([AIMessage("yes", usage_metadata=usage)]))
    return {"messages": [model.invoke(state["messages"])]}


_inner = StateGraph(MessagesState)
_inner.add_node("answer", _answer)
_inner.add_edge(START, "answer")
_inner.add_edge("answer", END)

# A graph with a subgraph that asks a model.
_agent = StateGraph(MessagesState)
_agent.add_node("research", _inner.compile())
_agent.add_edge(START, "research")
_agent.add_edge("research", END)
agent = _agent.compile()


class Once(TypedDict, total=False):
    marker: str
    attempts: int


def _die(state: Once) -> dict[str, Any]:
    """Ends its host with the first attempt, after the open steps were sent."""
    marker = Path(state["marker"])
    if marker.exists():
        return {"attempts": 2}
    marker.touch()
    time.sleep(1.2)
    os._exit(1)


_dies_once = StateGraph(Once)
_dies_once.add_node("before", lambda state: {"attempts": 1})
_dies_once.add_node("die", _die)
_dies_once.add_edge(START, "before")
_dies_once.add_edge("before", "die")
_dies_once.add_edge("die", END)
dies_once = _dies_once.compile()


def factory(config: dict[str, Any]) -> None:
    raise RuntimeError(f"no graph for {config['configurable']['user_id']}")
