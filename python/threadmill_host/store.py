"""A LangGraph store that calls the service's store."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from .context import CURRENT_RUN, CurrentRun
from .messages import Message
from .wire import to_wire

OUTSIDE_OF_RUN = (
    "The store is available only during a run, not while the graph is being loaded or its state is being read."
)


class HostStore(BaseStore):
    """The instance without a run serves all graphs and runs of a host."""

    supports_ttl = True

    def __init__(self, run: CurrentRun | None = None) -> None:
        # For threads that a node starts by itself: they do not inherit the context.
        self._run = run

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        run = self._current_run()
        results = run.connection.request_sync(run.key, _request(operations))
        return _results(operations, results)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        run = self._current_run()
        results = await run.connection.request(run.key, _request(operations))
        return _results(operations, results)

    def _current_run(self) -> CurrentRun:
        run = CURRENT_RUN.get() or self._run
        if run is None:
            raise RuntimeError(OUTSIDE_OF_RUN)
        return run


def _request(operations: list[Op]) -> Message:
    return {"op": "store", "operations": [_to_request(operation) for operation in operations]}


def _to_request(operation: Op) -> Message:
    if isinstance(operation, GetOp):
        return {"kind": "get", "namespace": list(operation.namespace), "key": operation.key, **_refresh(operation)}
    if isinstance(operation, PutOp):
        target = {"namespace": list(operation.namespace), "key": operation.key}
        if operation.value is None:
            return {"kind": "delete", **target}
        value = to_wire(_without_nul(operation.value))
        index = {} if operation.index is None else {"index": operation.index}
        ttl = {} if operation.ttl is None else {"ttl": operation.ttl}
        return {"kind": "put", **target, "value": value, **index, **ttl}
    if isinstance(operation, SearchOp):
        request: Message = {
            "kind": "search",
            "namespace_prefix": list(operation.namespace_prefix),
            "filter": _without_nul(operation.filter),
            "query": operation.query,
            "limit": operation.limit,
            "offset": operation.offset,
            **_refresh(operation),
        }
    elif isinstance(operation, ListNamespacesOp):
        request = {
            "kind": "namespaces",
            **{condition.match_type: list(condition.path) for condition in operation.match_conditions or ()},
            "max_depth": operation.max_depth,
            "limit": operation.limit,
            "offset": operation.offset,
        }
    else:
        raise TypeError(f"The store does not support {type(operation).__name__}.")
    return {name: value for name, value in request.items() if value is not None}


def _refresh(operation: GetOp | SearchOp) -> Message:
    # True is also the default of LangGraph, whatever the service's default is.
    return {} if operation.refresh_ttl else {"refresh_ttl": False}


def _without_nul(value: Any) -> Any:
    """Returns the value as a request would store it: with U+FFFD for NUL, which databases reject."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nul(item) for item in value]
    return value


def _results(operations: list[Op], results: list[Any]) -> list[Result]:
    return [_from_result(operation, result) for operation, result in zip(operations, results, strict=True)]


def _from_result(operation: Op, result: Any) -> Result:
    if isinstance(operation, GetOp):
        return Item(**_item_fields(result)) if result else None
    if isinstance(operation, SearchOp):
        return [SearchItem(**_item_fields(item), score=item.get("score")) for item in result]
    if isinstance(operation, ListNamespacesOp):
        return [tuple(namespace) for namespace in result]
    return None


def _item_fields(item: Message) -> dict[str, Any]:
    return {
        "namespace": tuple(item["namespace"]),
        "key": item["key"],
        "value": item["value"],
        "created_at": datetime.fromisoformat(item["created_at"]),
        "updated_at": datetime.fromisoformat(item["updated_at"]),
    }
