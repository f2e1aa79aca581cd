"""The JSON of values."""

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import sys
import types
import uuid
from collections import OrderedDict, UserDict, deque, namedtuple
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from threadmill_host.wire import text_of, to_wire


def wire(value: Any) -> Any:
    return json.loads(to_wire(value))


class Shape(str, enum.Enum):  # noqa: UP042 - StrEnum has another __str__
    ROUND = "round"


class Color(enum.Enum):
    RED = "red"


class Model(BaseModel):
    name: str
    when: datetime.date | None = None


@dataclasses.dataclass
class Point:
    x: int
    message: Any = None


Pair = namedtuple("Pair", ["left", "right"])


class Plain:
    def __str__(self) -> str:
        return "plain"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
        (2**63, 2**63),
        (2**80, 2**80),
        (-(2**70), -(2**70)),
        ({"a": [2**80, "\ud800x"]}, {"a": [2**80, "\ufffdx"]}),
        ("\ud83d\ude00", "😀"),
        ({"\ud800": 1}, {"\ufffd": 1}),
        (
            {(1, 2): "tuple", 3: "int", None: "none", 2**70: "big"},
            {"(1, 2)": "tuple", "3": "int", "null": "none", str(2**70): "big"},
        ),
        ((1, 2), [1, 2]),
        ({1}, [1]),
        (frozenset([1]), [1]),
        (deque([1, 2]), [1, 2]),
        (range(2), [0, 1]),
        (OrderedDict(a=1), {"a": 1}),
        (UserDict({"a": 1}), {"a": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({"a": 1}.keys(), ["a"]),
        (Pair(1, (2,)), {"left": 1, "right": [2]}),
        (b"\x00\xff", "AP8="),
        (bytearray(b"a"), "YQ=="),
        (decimal.Decimal("1.50"), "1.50"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "2026-01-02T03:04:05+00:00"),
        (Color.RED, "red"),
        ({Shape.ROUND: Shape.ROUND, "text": "\ud83d"}, {"round": "round", "text": "\ufffd"}),
        (Model(name="n", when=datetime.date(2026, 1, 2)), {"name": "n", "when": "2026-01-02"}),
        ([Point(1, {"big": 2**80})], [{"x": 1, "message": {"big": 2**80}}]),
        (ValueError("bad"), {"error": "ValueError", "message": "bad"}),
        (KeyError(), {"error": "KeyError", "message": "KeyError()"}),
        (Send("node", {"a": 1}), {"node": "node", "arg": {"a": 1}}),
        (Interrupt("v", id="i"), {"value": "v", "id": "i", "response_schema": None}),
        (Plain(), "plain"),
        (int, "<class 'int'>"),
        ("\x00", "\x00"),
    ],
)
def test_values(value: Any, expected: Any) -> None:
    assert wire(value) == expected


def test_messages() -> None:
    assert wire(HumanMessage("hi", id="1")) == {
        "content": "hi",
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "human",
        "name": None,
        "id": "1",
        "example": False,
        "tool_calls": [],
        "invalid_tool_calls": [],
        "usage_metadata": None,
    }
    call = {"name": "search", "args": {"q": 1}, "id": "c", "type": "tool_call"}
    assert wire([AIMessage("", tool_calls=[call])])[0]["tool_calls"] == [call]
    tool = wire(ToolMessage("result", tool_call_id="c", artifact={"a": 1}))
    assert (tool["type"], tool["tool_call_id"], tool["status"], tool["artifact"]) == ("tool", "c", "success", {"a": 1})
    chunk = AIMessageChunk("x", tool_call_chunks=[{"name": "s", "args": "{", "id": "c", "index": 0}])
    found = wire(chunk)
    assert found["type"] == "AIMessageChunk" and found["tool_call_chunks"][0]["args"] == "{"
    assert wire({"deep": Point(1, AIMessage("x\ud800"))})["deep"]["message"]["content"] == "x\ufffd"


def test_cycles() -> None:
    cycle: list[Any] = []
    cycle.append({"again": cycle})
    with pytest.raises(TypeError, match="circular reference"):
        to_wire(cycle)
    shared = [1]
    assert wire([shared, shared]) == [[1], [1]]


def test_deep_values() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TypeError, match="nested too deeply"):
        to_wire(deep)
    assert "unserializable" in text_of(cycle_of_dicts())


def cycle_of_dicts() -> dict[str, Any]:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    return cycle


def test_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6).reshape(2, 3)
    assert wire({"a": array, "t": array.T, "n": numpy.float64(1.5)}) == {
        "a": [[0, 1, 2], [3, 4, 5]],
        "t": [[0, 3], [1, 4], [2, 5]],
        "n": 1.5,
    }
