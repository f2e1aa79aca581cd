"""Python twins of the graphs with the same names."""

import asyncio
from typing import Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class Step(TypedDict, total=False):
    text: str
    reply: str


async def answer(state: Step) -> Step:
    return {"reply": f"You said {state['text']}."}


step = StateGraph(Step).add_node(answer).add_edge(START, "answer").add_edge("answer", END).compile()


class Steps(TypedDict, total=False):
    count: int
    until: int
    wait: bool


async def count(state: Steps) -> Steps:
    if state["count"] >= state["until"] and state.get("wait"):
        get_stream_writer()("waiting")
        await asyncio.Event().wait()
    return {"count": state["count"] + 1}


def after(state: Steps) -> Any:
    is_done = state["count"] >= state["until"] and not state.get("wait")
    return END if is_done else "step"


steps = StateGraph(Steps).add_node("step", count).add_edge(START, "step").add_conditional_edges("step", after).compile()


class Events(TypedDict, total=False):
    count: int


async def write(state: Events) -> Events:
    writer = get_stream_writer()
    for index in range(state["count"]):
        writer({"index": index})
    return {}


events = StateGraph(Events).add_node(write).add_edge(START, "write").compile()
