"""Functions that return a graph."""

import asyncio
import dataclasses
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from .importing import GraphImportError
from .users import User

try:
    from langgraph_sdk.runtime import ServerRuntime, _ExecutionRuntime, _ReadRuntime

    _RUNTIME_TYPES: tuple[Any, ...] = (ServerRuntime, _ExecutionRuntime, _ReadRuntime)
except ModuleNotFoundError:
    # langgraph-sdk before 0.3.5, which langgraph 1.2 permits.
    _RUNTIME_TYPES = ()


@dataclass(frozen=True)
class FactoryCall:
    """The purpose of a call of a factory."""

    config: Mapping[str, Any]
    access_context: str
    context: Any
    is_run: bool
    user: User | None
    store: BaseStore


class Factory:
    """An exported function with 0 to 2 parameters, matched by annotation, else by name, else by position."""

    def __init__(self, function: Callable[..., Any], name: str, where: str) -> None:
        self.name = name
        self.where = where
        self._function = function
        parameters = _parameters(function)
        if len(parameters) > 2:
            raise GraphImportError(
                f'"{name}" in {where} has {len(parameters)} parameters. '
                "A function that returns a graph has at most two: config and runtime."
            )
        self._roles = _roles(parameters)
        self._parameters = parameters

    @asynccontextmanager
    async def call(self, call: FactoryCall) -> AsyncIterator[Any]:
        """Calls the factory, and closes what it has opened afterwards. Synchronous functions run in a thread."""
        positional, named = [], {}
        for parameter, role in zip(self._parameters, self._roles, strict=True):
            value = _runtime(call, parameter.annotation) if role == "runtime" else dict(call.config)
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        function: Callable[..., Any] = self._function
        if inspect.isasyncgenfunction(function):
            function = asynccontextmanager(function)
        elif inspect.isgeneratorfunction(function):
            function = contextmanager(function)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(getattr(function, "__wrapped__", None)):
            value = function(*positional, **named)
        else:
            value = await asyncio.to_thread(function, *positional, **named)
        if inspect.isawaitable(value):
            value = await value
        if isinstance(value, AbstractAsyncContextManager):
            async with value as graph:
                yield graph
        elif isinstance(value, AbstractContextManager):
            async with _in_thread(value) as graph:
                yield graph
        else:
            yield value


@asynccontextmanager
async def _in_thread(manager: AbstractContextManager[Any]) -> AsyncIterator[Any]:
    """Enters and leaves a synchronous context manager in a thread, even if the run is cancelled in the meantime."""
    entering = asyncio.ensure_future(asyncio.to_thread(manager.__enter__))
    try:
        value = await asyncio.shield(entering)
    except asyncio.CancelledError:
        await asyncio.wait([entering])
        if entering.exception() is None:
            await asyncio.to_thread(manager.__exit__, None, None, None)
        raise
    try:
        yield value
    except BaseException as error:
        if not await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(manager.__exit__, None, None, None)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError, AttributeError, SyntaxError):
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [parameter for parameter in signature.parameters.values() if parameter.kind not in variable]


def _roles(parameters: list[inspect.Parameter]) -> list[str]:
    roles: list[str | None] = [_annotated_role(parameter.annotation) for parameter in parameters]
    for index, parameter in enumerate(parameters):
        if roles[index] is None and parameter.name in ("config", "runtime") and parameter.name not in roles:
            roles[index] = parameter.name
    for index, role in enumerate(roles):
        if role is None:
            roles[index] = "config" if "config" not in roles else "runtime"
    return [str(role) for role in roles]


def _annotated_role(annotation: Any) -> str | None:
    if annotation is RunnableConfig:
        return "config"
    return "runtime" if _runtime_type(annotation) is not None else None


def _runtime_type(annotation: Any) -> Any:
    """Returns the annotation's ServerRuntime, with its type argument; None if it is another type."""
    for candidate in (annotation, *get_args(annotation)):
        if get_origin(candidate) in _RUNTIME_TYPES or candidate in _RUNTIME_TYPES:
            return candidate
    text = annotation if isinstance(annotation, str) else ""
    return _RUNTIME_TYPES[0] if _RUNTIME_TYPES and text.split("[")[0].endswith("ServerRuntime") else None


def _runtime(call: FactoryCall, annotation: Any) -> Any:
    if not _RUNTIME_TYPES:
        raise GraphImportError(
            "The parameter runtime of a function that returns a graph requires langgraph-sdk 0.3.5 or later. "
            "Run pip install --upgrade langgraph-sdk."
        )
    common: dict[str, Any] = {"access_context": call.access_context, "user": call.user, "store": call.store}
    if not call.is_run:
        return _ReadRuntime(**common)
    context = call.context
    for schema in get_args(_runtime_type(annotation)):
        is_class = isinstance(schema, type)
        if (
            isinstance(context, dict)
            and is_class
            and (dataclasses.is_dataclass(schema) or issubclass(schema, BaseModel))
        ):
            context = schema(**context)
    return _ExecutionRuntime(**common, context=context)
