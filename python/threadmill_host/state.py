"""States of threads in the format of the API."""

from collections.abc import Mapping
from typing import Any

from langgraph.types import Interrupt, PregelTask, StateSnapshot

from .messages import Message
from .wire import to_wire


def summarize(snapshot: StateSnapshot) -> Message:
    """Returns the state fields of a thread's record."""
    interrupts = {task.id: list(task.interrupts) for task in open_tasks(snapshot)}
    return {"values": to_wire(snapshot.values), "next": list(snapshot.next), "interrupts": to_wire(interrupts)}


def open_tasks(snapshot: StateSnapshot) -> list[PregelTask]:
    """Returns the interrupted tasks. LangGraph keeps the interrupts of a task that has ended."""
    return [task for task in snapshot.tasks if task.interrupts and task.result is None and task.name in snapshot.next]


def open_interrupts(snapshot: StateSnapshot) -> list[Interrupt]:
    return [interrupt for task in open_tasks(snapshot) for interrupt in task.interrupts]


def to_thread_state(snapshot: StateSnapshot) -> Message:
    """Converts a state to the format of the API."""
    return {
        "values": snapshot.values,
        "next": list(snapshot.next),
        "tasks": [_task(task) for task in snapshot.tasks],
        "metadata": snapshot.metadata or {},
        "created_at": snapshot.created_at,
        "checkpoint": to_checkpoint_key(snapshot.config),
        "parent_checkpoint": to_checkpoint_key(snapshot.parent_config) if snapshot.parent_config else None,
        "interrupts": open_interrupts(snapshot),
    }


def _task(task: PregelTask) -> Message:
    state = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": list(task.path),
        "error": (str(task.error) or repr(task.error)) if isinstance(task.error, BaseException) else task.error,
        "interrupts": list(task.interrupts),
        "checkpoint": None if state is None or isinstance(state, StateSnapshot) else to_checkpoint_key(state),
        "state": to_thread_state(state) if isinstance(state, StateSnapshot) else None,
        "result": task.result,
    }


def to_checkpoint_key(config: Mapping[str, Any]) -> Message | None:
    """Returns the API's reference to a checkpoint; None if the config refers to none."""
    configurable = config.get("configurable") or {}
    key = {
        "thread_id": configurable.get("thread_id"),
        "checkpoint_ns": configurable.get("checkpoint_ns") or "",
        "checkpoint_id": configurable.get("checkpoint_id"),
        "checkpoint_map": configurable.get("checkpoint_map"),
    }
    return None if key["checkpoint_id"] is None and key["checkpoint_ns"] == "" else key


def to_configurable(key: Mapping[str, Any]) -> Message:
    """Converts a checkpoint reference to LangGraph's `configurable`."""
    configurable = {"thread_id": key["thread_id"], "checkpoint_ns": key.get("checkpoint_ns") or ""}
    if key.get("checkpoint_id") is not None:
        configurable["checkpoint_id"] = key["checkpoint_id"]
    return configurable


def select_state(state: Message, select: list[str] | None) -> Message:
    """Returns the selected fields of a state. `values.<key>` selects a single value; None selects the whole state."""
    if select is None:
        return state
    selected = {name: state[name] for name in select if name in state}
    keys = [name.removeprefix("values.") for name in select if name.startswith("values.")]
    values = state["values"]
    if keys and "values" not in selected and isinstance(values, Mapping):
        selected["values"] = {key: values[key] for key in keys if key in values}
    return selected
