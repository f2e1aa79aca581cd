import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from chain import Steps, adds
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class Kind(Steps, total=False):
    kind: str
    value: Any


class PaymentError(Exception):
    pass


_circular: dict[str, Any] = {}
_circular["self"] = _circular

_RAISED: dict[str, Callable[[], Exception]] = {
    "type_error": lambda: TypeError("steps is not iterable"),
    "own_class": lambda: PaymentError("card refused"),
    "string": lambda: Exception("just a string"),
    "object": lambda: Exception({"code": 42}),
    "circular_object": lambda: Exception(_circular),
    "null": lambda: Exception(None),
    "undefined": lambda: Exception(),
}


async def _second(state: Kind) -> dict[str, Any]:
    raised = _RAISED.get(state.get("kind", "undefined"))
    if raised:
        raise raised()
    return {"steps": ["second"]}


# Raises what `kind` names. Any other kind passes.
_fails = StateGraph(Kind)
_fails.add_node("first", adds("first"))
_fails.add_node("second", _second)
_fails.add_edge(START, "first")
_fails.add_edge("first", "second")
_fails.add_edge("second", END)
fails = _fails.compile()

_ODD: dict[str, Any] = {
    "bigint": {"value": {"count": 10**30}},
    "circular": {"value": _circular},
    "function": {"value": lambda: 1},
    "symbol": {"value": object()},
    "nul": {"value": "a\0b"},
    "surrogate": {"value": "a\ud800b"},
    "nan": {"value": float("nan")},
    "date": {"value": datetime.fromtimestamp(0, UTC)},
    "string": "not an update",
    "number": 7,
}


async def _odd(state: Kind) -> Any:
    kind = state["kind"]
    if not kind.startswith("emit_"):
        return _ODD[kind]
    get_stream_writer()(_ODD[kind.removeprefix("emit_")]["value"])
    return {"steps": ["odd"]}


# Returns what `kind` names, or emits it if the name begins with `emit_`.
_nonsense = StateGraph(Kind)
_nonsense.add_node("first", adds("first"))
_nonsense.add_node("odd", _odd)
_nonsense.add_edge(START, "first")
_nonsense.add_edge("first", "odd")
_nonsense.add_edge("odd", END)
nonsense = _nonsense.compile()


async def _die(_: Steps) -> dict[str, Any]:
    os._exit(1)


# Ends its graph host.
_dies = StateGraph(Steps)
_dies.add_node("die", _die)
_dies.add_edge(START, "die")
_dies.add_edge("die", END)
dies = _dies.compile()
