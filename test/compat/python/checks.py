"""What both kinds of scenarios check with."""

import uuid
from typing import Any

TRAIL = ["begin", "look", "dig", "fill", "finish plainly"]
REFUND = {"messages": [{"role": "user", "content": "refund order 1042"}]}
ASK = {"messages": [{"role": "user", "content": "Where is my order 1042?"}]}
ANSWER = "Order 1042 (walking boots) is shipped. It should arrive on Thursday."
QUESTION = "Refund $129.00 for order 1042 (walking boots)?"
REJECTED = "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."


def unique() -> str:
    return str(uuid.uuid4())


def same(actual: Any, expected: Any) -> None:
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, but got {actual!r}")


def has(actual: dict, expected: dict) -> None:
    """Like `same`, for the named keys of a record only."""
    same({key: actual.get(key) for key in expected}, expected)


def contains(text: Any, part: str) -> None:
    if part not in str(text):
        raise AssertionError(f"expected {part!r} in {text!r}")
