"""The input and the options with which LangGraph executes a run."""

import base64
import uuid
from collections.abc import Mapping
from typing import Any

import orjson
from langgraph.pregel import Pregel
from langgraph.types import Command, StateSnapshot

from threadmill.tokens import REQUEST_TOKEN_KEY, is_token_interrupt

from .commands import INTERRUPT, is_consumed_resume, to_command
from .execution import Execution
from .messages import Message
from .outcome import state_config
from .scope import SCOPE, Scope
from .state import open_interrupts, open_tasks

Graph = Pregel[Any, Any, Any, Any]


async def run_input(graph: Graph, execution: Execution, scope: Scope) -> Any:
    """Returns the input: None if an earlier claim of the run has stored a checkpoint or writes."""
    if _has_own_checkpoint(execution):
        return None
    if _prior_writes(execution):
        return await _remaining_input(graph, execution, scope)
    return await _input_of(graph, execution, scope)


async def _input_of(graph: Graph, execution: Execution, scope: Scope) -> Any:
    command = execution.kwargs.get("command")
    if not command:
        return execution.kwargs.get("input")
    if "resume" not in command:
        return to_command(command)
    # The stored resume value belongs to an interrupt of an earlier run.
    scope.is_resume_consumed = True
    resume = command["resume"]
    # LangGraph ignores None without an interrupt id, and takes an empty dict as answers to no interrupt.
    needs_id = resume is None or resume == {}
    if not needs_id and not _may_need_token(execution):
        return to_command(command)
    opened = open_interrupts(await graph.aget_state(_start_config(execution, scope)))
    interrupt = next((one for one in opened if not is_token_interrupt(one)), None)
    # A token interrupt consumes no value: without an id, the value would go to the next interrupt of the node.
    if not needs_id and interrupt is not None:
        return to_command(command)
    target = interrupt or (opened[0] if opened else None)
    return to_command(command if target is None else {**command, "resume": {target.id: resume}})


async def _remaining_input(graph: Graph, execution: Execution, scope: Scope) -> Command[Any] | None:
    """Returns the resume values by interrupt id that no task has consumed: LangGraph stores them only when consumed."""
    command = execution.kwargs.get("command") or {}
    resume = command.get("resume")
    if "resume" not in command or not (resume is None or isinstance(resume, dict)):
        return None
    consumed = {
        write["task_id"] for write in execution.prior_writes if is_consumed_resume(write["task_id"], write["channel"])
    }
    snapshot = await graph.aget_state(_start_config(execution, scope))
    if not resume:
        # The answer to the first open interrupt, as in _input_of().
        first = next(iter(open_interrupts(snapshot)), None)
        resume = {} if consumed or first is None else {first.id: resume}
    remaining = {
        interrupt.id: resume[interrupt.id]
        for task in open_tasks(snapshot)
        for interrupt in task.interrupts
        if interrupt.id in resume and task.id not in consumed
    }
    return Command(resume=remaining) if remaining else None


def _start_config(execution: Execution, scope: Scope) -> Any:
    """Returns the config for reading the state that the run starts from: an older one if the request names it."""
    config = state_config(execution.order, scope)
    checkpoint_id = (execution.kwargs.get("config") or {}).get("configurable", {}).get("checkpoint_id")
    if checkpoint_id is None:
        return config
    return {**config, "configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}


async def state_at_breakpoint(graph: Graph, execution: Execution, scope: Scope) -> StateSnapshot | None:
    """Returns the state of a run whose own newest checkpoint is at a breakpoint; None if it is not.

    LangGraph takes the missing input of a run that continues for the permission to pass the breakpoint, at which an
    earlier claim was lost before the run ended.
    """
    head, kwargs = execution.head, execution.kwargs
    before = kwargs.get("interrupt_before") or graph.interrupt_before_nodes
    after = kwargs.get("interrupt_after") or graph.interrupt_after_nodes
    if head is None or not (before or after) or not _has_own_checkpoint(execution) or not _has_updates(head):
        return None
    config = state_config(execution.order, scope)
    state = await graph.aget_state(config)
    if any(before == "*" or name in before for name in state.next):
        return state
    # The checkpoint of an input was made by no node: those that were next before it have not run.
    if not after or state.parent_config is None or (state.metadata or {}).get("source") != "loop":
        return None
    checkpoint_id = state.parent_config["configurable"]["checkpoint_id"]
    parent: Any = {**config, "configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}
    names = (await graph.aget_state(parent)).next
    return state if any(after == "*" or name in after for name in names) else None


def _has_updates(head: Message) -> bool:
    """Whether a channel has changed since the last interrupt, without which LangGraph does not interrupt."""
    checkpoint = orjson.loads(head["checkpoint"])
    seen = checkpoint["versions_seen"].get(INTERRUPT, {})
    return any(
        channel not in seen or version > seen[channel] for channel, version in checkpoint["channel_versions"].items()
    )


def _may_need_token(execution: Execution) -> bool:
    """Whether the run may resume a token interrupt. False saves a read of the thread's state."""
    head = execution.head
    checkpoint_id = (execution.kwargs.get("config") or {}).get("configurable", {}).get("checkpoint_id")
    if checkpoint_id is not None and (head is None or checkpoint_id != head["checkpoint_id"]):
        return True
    return head is not None and any(
        write["channel"] == INTERRUPT and b"auth_url" in base64.b64decode(write["value"]) for write in head["writes"]
    )


def _has_own_checkpoint(execution: Execution) -> bool:
    """Whether an earlier claim of the run stored a checkpoint, from which this claim continues."""
    head, order = execution.head, execution.order
    if order["epoch"] == 1 or head is None:
        return False
    return bool(orjson.loads(head["metadata"]).get("run_id") == order["run_id"])


def _prior_writes(execution: Execution) -> list[Message]:
    """Returns the writes of earlier claims, without the copy of the input that a DeltaChannel needs.

    LangGraph stores that copy before the input, so the input may be missing.
    """
    if execution.head is None:
        return execution.prior_writes
    input_task = str(uuid.uuid5(uuid.UUID(execution.head["checkpoint_id"]), "__input__"))
    return [write for write in execution.prior_writes if write["task_id"] != input_task]


def stream_options(config: Mapping[str, Any], execution: Execution, scope: Scope) -> tuple[Any, dict[str, Any]]:
    """Returns the config and the other arguments of `astream()`.

    Undefined options are omitted, because in LangGraph they would override the graph's defaults.
    """
    order, kwargs = execution.order, execution.kwargs
    configurable = dict(config.get("configurable") or {})
    # A resumed run continues from its own newest checkpoint, not from the checkpoint that it forked.
    if _has_own_checkpoint(execution):
        configurable.pop("checkpoint_id", None)
    own = {name: order[name] for name in ("thread_id", "run_id", "graph_id", "assistant_id")}
    run_config: dict[str, Any] = {
        **{name: config[name] for name in _CONFIG_FIELDS if config.get(name) is not None},
        "configurable": {**configurable, **own, REQUEST_TOKEN_KEY: execution.request_token, SCOPE: scope},
        "metadata": scope.metadata,
        "run_id": uuid.UUID(order["run_id"]),
    }
    if execution.tracer is not None:
        run_config["callbacks"] = [execution.tracer]
    options = {
        "durability": kwargs.get("durability") or "sync",
        "context": kwargs.get("context"),
        "interrupt_before": kwargs.get("interrupt_before"),
        "interrupt_after": kwargs.get("interrupt_after"),
        "control": execution.controls.control,
    }
    return run_config, {name: value for name, value in options.items() if value is not None}


_CONFIG_FIELDS = ("tags", "recursion_limit", "max_concurrency", "run_name")

# Internal keys of `configurable`, which are not metadata.
_INTERNAL_KEYS = {"checkpoint_ns", "checkpoint_id", "checkpoint_map", "run_id", "thread_id"}


def checkpoint_metadata(order: Message) -> Message:
    """Returns the metadata of the run's checkpoints, without the caller's identity.

    LangGraph recognizes a retried run by the run id.
    """
    config = order["kwargs"].get("config") or {}
    own = {name: order[name] for name in ("run_id", "thread_id", "graph_id", "assistant_id")}
    return {
        **{
            key: value
            for key, value in (config.get("configurable") or {}).items()
            if not key.startswith(("__", "langgraph_auth_")) and key not in _INTERNAL_KEYS
        },
        **(config.get("metadata") or {}),
        **own,
        "run_attempt": order["attempt"],
    }
