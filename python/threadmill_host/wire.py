"""Converts values of graphs to the JSON text of the API."""

import base64
from collections import deque
from collections.abc import KeysView, Mapping, Sequence, Set, ValuesView
from dataclasses import fields, is_dataclass
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from langgraph.types import Send
from pydantic import BaseModel

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

CYCLE = "The value contains a circular reference and cannot be converted to JSON."


def to_wire(value: Any) -> str:
    """Returns JSON text. Messages become flat objects with all their fields, null or empty where unset.

    Raises TypeError when the value contains a cycle.
    """
    return to_wire_bytes(value).decode()


def to_wire_bytes(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=_convert, option=OPTIONS)
    except (TypeError, RecursionError):
        # orjson rejects unpaired surrogates, integers above 64 bits and tuples as keys.
        return orjson.dumps(_plain(value, []), default=str, option=OPTIONS)


def text_of(value: Any) -> str:
    """Returns JSON text, or the string itself. Never raises, because a log call must not make a node fail."""
    if isinstance(value, str):
        return clean(value)
    try:
        return to_wire(value)
    except Exception:
        return to_wire({"unserializable": repr(value)})


def clean(text: str) -> str:
    """Replaces unpaired surrogates, which have no UTF-8 encoding, by U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_OPTIONAL_FIELDS = ("tool_call_id", "artifact", "status", "role", "tool_call_chunks", "chunk_position")


def flat_message(message: BaseMessage) -> dict[str, Any]:
    """Returns the fields of a message as the API sends them."""
    flat: dict[str, Any] = {
        "content": message.content,
        "additional_kwargs": message.additional_kwargs,
        "response_metadata": message.response_metadata,
        "type": message.type,
        "name": message.name,
        "id": message.id,
        "example": getattr(message, "example", None) or False,
        "tool_calls": getattr(message, "tool_calls", None) or [],
        "invalid_tool_calls": getattr(message, "invalid_tool_calls", None) or [],
        "usage_metadata": getattr(message, "usage_metadata", None),
    }
    for field in _OPTIONAL_FIELDS:
        value = getattr(message, field, None)
        if value is not None:
            flat[field] = value
    return flat


def _convert(value: Any) -> Any:
    """Converts a value that orjson does not know."""
    if isinstance(value, BaseMessage):
        return flat_message(value)
    if isinstance(value, type):
        return str(value)
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Send):
        return {"node": value.node, "arg": value.arg}
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value) or repr(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Set, deque, Sequence, KeysView, ValuesView)):
        return list(value)
    # numpy arrays that are not contiguous, and pydantic models of version 1.
    for method in ("tolist", "dict"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    return str(value)


def _plain(value: Any, ancestors: list[int]) -> Any:
    """Returns the value as types that orjson accepts."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        return clean(_text(value))
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else orjson.Fragment(str(int(value)))
    if id(value) in ancestors:
        raise TypeError(CYCLE)
    ancestors.append(id(value))
    try:
        return _plain_object(value, ancestors)
    except RecursionError:
        raise TypeError("The value is nested too deeply and cannot be converted to JSON.") from None
    finally:
        ancestors.pop()


def _plain_object(value: Any, ancestors: list[int]) -> Any:
    if isinstance(value, dict):
        return {_key(key): _plain(item, ancestors) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_plain(item, ancestors) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = [field.name for field in fields(value) if not field.name.startswith("_")]
        return {clean(name): _plain(getattr(value, name), ancestors) for name in named}
    try:
        orjson.dumps(value, option=OPTIONS)
        return value
    except TypeError:
        return _plain(_convert(value), ancestors)


def _text(value: str) -> str:
    """Returns the text of an enumeration's member, of which `str()` returns the name."""
    return str.__str__(value)


def _key(key: Any) -> Any:
    if isinstance(key, str):
        return clean(_text(key))
    if isinstance(key, (bytes, tuple)) or (isinstance(key, int) and not -(2**63) <= key < 2**64):
        return clean(str(key))
    try:
        orjson.dumps({key: None}, option=OPTIONS)
        return key
    except TypeError:
        return clean(str(key))
