"""Scenarios with LangGraph's RemoteGraph, as a node of a local graph."""

from typing import Any, TypedDict

from checks import TRAIL, has, same, unique
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command, interrupt


class Trail(TypedDict, total=False):
    topic: str
    trail: list[str]


class Question(TypedDict, total=False):
    question: str
    answer: Any


def on_new_thread() -> dict:
    return {"configurable": {"thread_id": unique()}}


def around(state: type, name: str, node: Any):
    """A local graph with one node."""
    return StateGraph(state).add_node(name, node).add_edge(START, name).compile(checkpointer=InMemorySaver())


async def streams(url: str) -> None:
    """it streams its subgraphs into the graph of which it is a node"""
    parent = around(Trail, "far", RemoteGraph("agent", url=url))
    same(await parent.ainvoke({"topic": "bees"}, on_new_thread()), {"topic": "bees", "trail": TRAIL})
    nested = []
    async for namespace, update in parent.astream({"topic": "bees"}, on_new_thread(), stream_mode="updates", subgraphs=True):
        if namespace:
            same(namespace[0].split(":")[0], "far")
            nested.extend(update)
    same(nested, ["begin", "look", "dig", "fill", "deepest", "inner", "finish"])


async def interrupts(url: str) -> None:
    """it interrupts the graph of which it is a node"""
    parent, config = around(Question, "far", RemoteGraph("asking", url=url)), on_new_thread()
    await parent.ainvoke({"question": "Why?"}, config)
    state = await parent.aget_state(config)
    same([(task.name, task.interrupts[0].value) for task in state.tasks], [("far", "Why?")])


async def responses(url: str) -> None:
    """it gets the response to its interrupt from the node that calls it"""
    far, thread = RemoteGraph("asking", url=url), on_new_thread()

    async def ask(state: Question) -> dict:
        stopped = await far.ainvoke(state, thread)
        # LangGraph starts a node again when the graph is resumed, and RemoteGraph does not pass on a response by itself.
        return await far.ainvoke(Command(resume=interrupt(stopped["__interrupt__"][0]["value"])), thread)

    parent, config = around(Question, "ask", ask), on_new_thread()
    stopped = await parent.ainvoke({"question": "Why?"}, config)
    same([one.value for one in stopped["__interrupt__"]], ["Why?"])
    answered = await parent.ainvoke(Command(resume={"because": ["bees"]}), config)
    has(answered, {"question": "Why?", "answer": {"because": ["bees"]}})


SCENARIOS = [streams, interrupts, responses]
