from collections.abc import Callable
from typing import Annotated, Any

from chain import Steps, adds
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


def _merge(before: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    return {**before, **added}


class Answers(Steps, total=False):
    answers: Annotated[dict[str, Any], _merge]


def _ask_twice(_: Answers) -> dict[str, Any]:
    """Asks twice in one node, which therefore starts three times."""
    name = interrupt({"question": "name?"})
    age = interrupt({"question": "age?", "name": name})
    return {"answers": {"name": name, "age": age}, "steps": ["ask"]}


_gate = StateGraph(Answers)
_gate.add_node("open", adds("open"))
_gate.add_node("ask", _ask_twice)
_gate.add_node("close", adds("close"))
_gate.add_edge(START, "open")
_gate.add_edge("open", "ask")
_gate.add_edge("ask", "close")
_gate.add_edge("close", END)
gate = _gate.compile()


def _asks(name: str) -> Callable[[Answers], dict[str, Any]]:
    def ask(_: Answers) -> dict[str, Any]:
        return {"answers": {name: interrupt({"question": name})}}

    return ask


# Two branches ask at the same time. `join` runs when both have their answer.
_parallel = StateGraph(Answers)
_parallel.add_node("left", _asks("left"))
_parallel.add_node("right", _asks("right"))
_parallel.add_node("join", adds("join"))
_parallel.add_edge(START, "left")
_parallel.add_edge(START, "right")
_parallel.add_edge(["left", "right"], "join")
_parallel.add_edge("join", END)
parallel = _parallel.compile()
