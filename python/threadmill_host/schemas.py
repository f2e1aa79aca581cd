"""JSON schemas of a graph."""

import warnings
from collections.abc import Callable
from typing import Any, get_type_hints

from langgraph.channels.base import BaseChannel
from langgraph.pregel import Pregel
from pydantic import TypeAdapter, create_model

from .messages import Message

Graph = Pregel[Any, Any, Any, Any]


def schemas_of(graph: Graph) -> dict[str, Message]:
    """Returns the schemas of input, output, state, config and context. A schema that cannot be created is null."""
    builder: Any = getattr(graph, "builder", None)
    context = _schema(graph.get_context_jsonschema)
    return {
        "input": _schema(graph.get_input_jsonschema, lambda: _typed_dict_schema(builder.input_schema)),
        "output": _schema(graph.get_output_jsonschema, lambda: _typed_dict_schema(builder.output_schema)),
        "state": _schema(
            lambda: _state_schema(graph, builder),
            lambda: _typed_dict_schema(builder.state_schema),
        ),
        "config": context,
        "context": context,
    }


def _schema(*ways: Callable[[], Any]) -> Message:
    """Returns the result of the first way that succeeds."""
    for read in ways:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                schema = read()
        except Exception:
            continue
        return {"schema": schema, "is_whole": schema is not None}
    return {"schema": None, "is_whole": False}


def _state_schema(graph: Graph, builder: Any) -> Any:
    """Returns the schema of the class of the state, else of the types of the channels."""
    if builder is not None:
        return TypeAdapter(builder.state_schema).json_schema()
    names = graph.stream_channels_list
    if names == ["__root__"] or not names:
        return graph.get_output_jsonschema()
    fields: dict[str, Any] = {name: (_type_of(graph.channels[name]), None) for name in names if name in graph.channels}
    return create_model(graph.get_name("State"), **fields).model_json_schema()


def _typed_dict_schema(cls: Any) -> Any:
    """Returns the schema of a `typing.TypedDict`, which pydantic refuses before Python 3.12."""
    required = cls.__required_keys__
    fields: dict[str, Any] = {
        name: (hint, ... if name in required else None) for name, hint in get_type_hints(cls).items()
    }
    return create_model(cls.__name__, **fields).model_json_schema()


def _type_of(channel: Any) -> Any:
    return channel.UpdateType if isinstance(channel, BaseChannel) else Any
