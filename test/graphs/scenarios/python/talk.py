from typing import Any

from langchain_core.language_models import FakeListChatModel
from langgraph.graph import END, START, MessagesState, StateGraph


async def _answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await FakeListChatModel(responses=["yes"]).ainvoke(state["messages"])]}


# Answers each message with the same three letters, one token per letter.
_talk = StateGraph(MessagesState)
_talk.add_node("answer", _answer)
_talk.add_edge(START, "answer")
_talk.add_edge("answer", END)
talk = _talk.compile()
