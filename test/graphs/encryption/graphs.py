"""Graphs whose state, events, interrupts and store items contain the texts of the input."""

from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    text: str
    answer: str


async def answer(state: State, *, store: BaseStore) -> Any:
    text = state["text"]
    get_stream_writer()({"progress": text})
    await store.aput(("notes",), "last", {"note": text})
    return {"answer": f"answer to {text}"}


async def ask(state: State) -> Any:
    return {"answer": f"{state['text']}, {interrupt({'question': state['text']})}"}


async def fail(state: State) -> Any:
    raise ValueError(f"cannot answer {state['text']}")


chat = StateGraph(State).add_node(answer).add_edge(START, "answer").add_edge("answer", END).compile()
asks = StateGraph(State).add_node(ask).add_edge(START, "ask").add_edge("ask", END).compile()
fails = StateGraph(State).add_node(fail).add_edge(START, "fail").add_edge("fail", END).compile()
