"""Starts and ends of subgraphs, which LangGraph's stream shows only through their tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

from .messages import Message

LifecycleEvent = tuple[Sequence[str], Message]
_Namespace = tuple[str, ...]


class Lifecycle:
    """Finds the subgraphs of a run in the namespaces and tasks of its stream."""

    def __init__(self) -> None:
        # By namespace: whether the subgraph has ended.
        self._ended: dict[_Namespace, bool] = {}
        # The end of a subgraph is reported after the result of its task.
        self._ending: list[tuple[_Namespace, str, str | None]] = []
        # Names of agents by namespace, and ids of tool calls by task.
        self._agents: dict[_Namespace, str | None] = {}
        self._tool_calls: dict[str, str] = {}

    def before(self, namespace: Sequence[str], task: Mapping[str, Any] | None) -> list[LifecycleEvent]:
        """Returns the events before a chunk."""
        if task is not None and "result" not in task:
            self._record(tuple(namespace), task)
        events = self._flush()
        for length in range(1, len(namespace) + 1):
            part = tuple(namespace[:length])
            if part not in self._ended:
                self._ended[part] = False
                events.append((part, self._started(part)))
        return events

    def after_result(self, namespace: Sequence[str], task: Mapping[str, Any]) -> None:
        """Records the end of the subgraph of a task."""
        child = (*namespace, f"{task['name']}:{task['id']}")
        if self._ended.get(child) is not False:
            return
        error = task.get("error")
        status = "interrupted" if task.get("interrupts") else "failed" if error else "completed"
        self._ending.append((child, status, str(error) if status == "failed" else None))

    def end(self) -> list[LifecycleEvent]:
        return [*self._flush(), *self._close("completed")]

    def fail(self) -> list[LifecycleEvent]:
        return [*self._flush(), *self._close("failed")]

    def _flush(self) -> list[LifecycleEvent]:
        ending, self._ending = self._ending, []
        return [self._ended_event(child, status, error) for child, status, error in ending if not self._ended[child]]

    def _close(self, status: str) -> list[LifecycleEvent]:
        left = [namespace for namespace, is_ended in self._ended.items() if not is_ended]
        return [self._ended_event(namespace, status, None) for namespace in left]

    def _ended_event(self, namespace: _Namespace, status: str, error: str | None) -> LifecycleEvent:
        self._ended[namespace] = True
        data = {"event": status, "graph_name": self._name(namespace)}
        return namespace, data if error is None else {**data, "error": error}

    def _started(self, namespace: _Namespace) -> Message:
        data: Message = {"event": "started", "graph_name": self._name(namespace)}
        tool_call = self._tool_calls.get(namespace[-1].partition(":")[2])
        if tool_call is not None and self._agents.get(namespace):
            data["cause"] = {"type": "toolCall", "tool_call_id": tool_call}
        return data

    def _name(self, namespace: _Namespace) -> str:
        return self._agents.get(namespace) or namespace[-1].partition(":")[0]

    def _record(self, namespace: _Namespace, task: Mapping[str, Any]) -> None:
        self._agents.setdefault(namespace, (task.get("metadata") or {}).get("lc_agent_name"))
        payload = task.get("input")
        calls = [payload.get("tool_call")] if isinstance(payload, dict) else payload
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                self._tool_calls[task["id"]] = call["id"]
                break
