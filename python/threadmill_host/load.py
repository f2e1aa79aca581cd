"""Loads the graphs of the project."""

import copy
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore

from .asgi import as_asgi
from .auth import ProjectAuth
from .checkpointer import HostCheckpointer
from .context import CURRENT_RUN
from .embeddings import Embeddings, load_embeddings
from .encryption import ProjectEncryption
from .factories import Factory, FactoryCall
from .importing import GraphImportError, Importer, format_traceback
from .messages import Message
from .store import HostStore
from .users import user_of

Graph = Pregel[Any, Any, Any, Any]
T = TypeVar("T")


class LoadedGraphs:
    """The graphs of the project. A graph that fails to load does not affect the other graphs."""

    def __init__(self, setup: Message, checkpointer: HostCheckpointer, store: BaseStore) -> None:
        self.failures: dict[str, str] = {}
        self.warnings: list[str] = []
        self.tracebacks: dict[str, str] = {}
        self.module_tracebacks: dict[str, str] = {}
        self._checkpointer = checkpointer
        self._store = store
        self._exported: dict[str, Graph | Factory] = {}
        importer = Importer(setup)
        self._setup = setup
        self._importer = importer
        self._embeddings: Embeddings | None = None
        for graph in setup["graphs"]:
            graph_id = graph["graph_id"]
            try:
                value, where = importer.load_export(graph)
                self._exported[graph_id] = self._to_export(value, graph["export_name"], where)
            except GraphImportError as failure:
                self.failures[graph_id] = str(failure)
                if failure.traceback:
                    self.tracebacks[graph_id] = failure.traceback

        # Each is a function that returns what was loaded, or raises the error with which that failed.
        self.auth = self._load_module("auth", ProjectAuth)
        self.app = self._load_module("app", as_asgi)
        self.encryption = self._load_module("encryption", ProjectEncryption)

    def _load_module(self, field: str, make: Callable[[Any], T]) -> Callable[[], T]:
        """Loads what a field of the setup refers to, in the main thread, like the graphs."""
        module = self._setup.get(field)
        try:
            if not module:
                raise ValueError(f"The host has no module for {field}.")
            exported, _ = self._importer.load_export(module)
            loaded = make(exported)
        except Exception as error:
            failure = error
            if module:
                self.module_tracebacks[field] = getattr(error, "traceback", None) or format_traceback(error)
        else:
            return lambda: loaded

        def fail() -> T:
            # Without this, the traceback would grow with each query.
            raise failure.with_traceback(None)

        return fail

    def oldest_call_ms(self) -> int:
        """Returns how long a synchronous handler of the project has been executing. A thread cannot be stopped."""
        return self.auth().oldest_call_ms() if self._setup.get("auth") and not self.module_tracebacks else 0

    def embeddings(self) -> Embeddings:
        """Returns the embedding function of the store, which is loaded when it is first called.

        Raises Exception when the project has none, or it fails to load.
        """
        if self._embeddings is None:
            self._embeddings = load_embeddings(self._setup, self._importer)
        return self._embeddings

    def _to_export(self, value: Any, name: str, where: str) -> "Graph | Factory":
        if isinstance(value, (Pregel, StateGraph)):
            try:
                return self._prepare(value)
            except Exception as error:
                raise GraphImportError(f"{type(error).__name__}: {error} ({where})") from error
        if callable(value) and not isinstance(value, type):
            return Factory(value, name, where)
        raise GraphImportError(not_a_graph(value, name, where))

    def _prepare(self, value: Any) -> "Graph":
        """Replaces the checkpointer and the store with which the graph was compiled: the service stores state and items."""
        # A copy, because the same graph may be a subgraph elsewhere.
        graph: Graph = copy.copy(value.compile() if isinstance(value, StateGraph) else value)
        graph.checkpointer = self._checkpointer
        graph.store = self._store
        return graph

    @asynccontextmanager
    async def use(
        self,
        graph_id: str,
        config: Mapping[str, Any],
        access_context: str,
        *,
        context: Any = None,
        is_run: bool = False,
    ) -> AsyncIterator["Graph"]:
        """Provides the graph. A factory is called each time, and what it opens is closed afterwards.

        Raises Exception when the graph is unknown or failed to load.
        """
        if graph_id in self.failures:
            raise GraphNotLoadedError(self.failures[graph_id])
        exported = self._exported.get(graph_id)
        if exported is None:
            raise GraphNotLoadedError(f'Graph "{graph_id}" not found.')
        if not isinstance(exported, Factory):
            yield exported
            return
        call = FactoryCall(config, access_context, context, is_run, user_of(config), HostStore(CURRENT_RUN.get()))
        async with exported.call(call) as value:
            if not isinstance(value, (Pregel, StateGraph)):
                raise GraphNotLoadedError(not_a_graph(value, exported.name, exported.where, "returned"))
            yield self._prepare(value)


class GraphNotLoadedError(Exception):
    """The graph does not exist or could not be loaded."""


def not_a_graph(value: Any, name: str, where: str, verb: str = "is") -> str:
    """Returns the error message for an export that is not a graph."""
    kind = "a class" if isinstance(value, type) else _with_article(type(value).__name__)
    return f'"{name}" in {where} {verb} {kind}. Export a StateGraph, a compiled graph, or a function that returns one.'


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def chdir_to_project(setup: Message) -> None:
    os.chdir(setup["project_dir"])
