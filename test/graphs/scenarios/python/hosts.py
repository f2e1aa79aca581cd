"""Graphs for the tests of Python graph hosts."""

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

from chain import Steps
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from slow import until_open


class Ledger(Steps, total=False):
    # Path of a file to which each node appends a line when it starts.
    ledger: str
    # Path of a file. The second node waits until it exists.
    door: str


def _record(file_name: str, name: str) -> None:
    with open(file_name, "a") as file:
        file.write(f"{name} {os.getpid()}\n")


def _writes(name: str, *, waits: bool = False) -> Callable[[Ledger], Awaitable[dict[str, Any]]]:
    async def node(state: Ledger) -> dict[str, Any]:
        _record(state["ledger"], name)
        get_stream_writer()({"at": name})
        if waits:
            await until_open(state["door"])
        return {"steps": [name]}

    return node


# Three steps that leave a record outside of the service.
_ledger = StateGraph(Ledger)
_ledger.add_node("first", _writes("first"))
_ledger.add_node("second", _writes("second", waits=True))
_ledger.add_node("third", _writes("third"))
_ledger.add_edge(START, "first")
_ledger.add_edge("first", "second")
_ledger.add_edge("second", "third")
_ledger.add_edge("third", END)
ledger = _ledger.compile()


async def _write_to_service(_: Steps) -> dict[str, Any]:
    os.write(3, b"not a frame\n")
    return {"steps": ["written"]}


# Writes to the descriptor that connects the host to the service.
_intruder = StateGraph(Steps)
_intruder.add_node("write", _write_to_service)
_intruder.add_edge(START, "write")
_intruder.add_edge("write", END)
intruder = _intruder.compile()


def _sleep(_: Steps) -> dict[str, Any]:
    get_stream_writer()({"asleep_in": os.getpid()})
    time.sleep(60)
    return {"steps": ["slept"]}


# A synchronous node, whose thread cannot be stopped.
_sleeper = StateGraph(Steps)
_sleeper.add_node("sleep", _sleep)
_sleeper.add_edge(START, "sleep")
_sleeper.add_edge("sleep", END)
sleeper = _sleeper.compile()
