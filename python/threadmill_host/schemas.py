"""JSON schemas of a graph."""

import warnings
from collections.abc import Callable
from typing import Any

from langgraph.channels.base import BaseChannel
from langgraph.pregel import Pregel
from pydantic import create_model

from .messages import Message

Graph = Pregel[Any, Any, Any, Any]


def schemas_of(graph: Graph) -> dict[str, Message]:
    """Returns the schemas of input, output, state, config and context. A schema that cannot be created is null."""
    context = _schema(graph.get_context_jsonschema)
    return {
        "input": _schema(graph.get_input_jsonschema),
        "output": _schema(graph.get_output_jsonschema),
        "state": _schema(lambda: _state_schema(graph)),
        "config": context,
        "context": context,
    }


def _schema(read: Callable[[], Any]) -> Message:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schema = read()
    except Exception:
        schema = None
    return {"schema": schema, "is_whole": schema is not None}


def _state_schema(graph: Graph) -> Any:
    names = graph.stream_channels_list
    if names == ["__root__"] or not names:
        return graph.get_output_jsonschema()
    fields: dict[str, Any] = {name: (_type_of(graph.channels[name]), None) for name in names if name in graph.channels}
    return create_model(graph.get_name("State"), **fields).model_json_schema()


def _type_of(channel: Any) -> Any:
    return channel.UpdateType if isinstance(channel, BaseChannel) else Any
