"""The values of LangGraph's DeltaChannel: the last stored value, and the writes of the ancestors since then."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory

from .messages import Message
from .scope import scope_of


class DeltaHistory:
    """The requests for the ancestors of a checkpoint. One request is enough, unless the values are too large for one response."""

    def __init__(self, config: RunnableConfig, channels: Sequence[str], load: Callable[[Message], Any]) -> None:
        configurable = config.get("configurable", {})
        self._load = load
        self._seeds: dict[str, Any] = {}
        # Newest first.
        self._writes: dict[str, list[tuple[str, str, Any]]] = {channel: [] for channel in channels}
        self._left = list(self._writes)
        self._scope = scope = scope_of(config)
        self._checkpoint_ns = checkpoint_ns = configurable.get("checkpoint_ns") or ""
        self._request: Message | None = {
            "op": "ancestors",
            "thread_id": configurable["thread_id"],
            "checkpoint_ns": checkpoint_ns,
        }
        if configurable.get("checkpoint_id"):
            self._request["checkpoint_id"] = configurable["checkpoint_id"]
        if scope.without is not None:
            self._request["without"] = scope.without
        staged = scope.staged_checkpoint(checkpoint_ns, configurable.get("checkpoint_id"))
        while staged is not None and self._request is not None:
            self._continue_from(staged["parent_checkpoint_id"])
            staged = scope.staged_checkpoint(checkpoint_ns, staged["parent_checkpoint_id"] or "")
            if staged is not None:
                self._add(staged)

    def next_request(self) -> Message | None:
        return {**self._request, "channels": self._left} if self._request and self._left else None

    def take(self, page: Message) -> None:
        for ancestor in page["checkpoints"]:
            # The first superstep of a state update writes to a stored checkpoint.
            staged = self._scope.staged_writes(self._checkpoint_ns, ancestor["checkpoint_id"])
            self._add({**ancestor, "writes": [*ancestor["writes"], *staged]})
        if page["isWhole"] or not page["checkpoints"]:
            self._request = None
        else:
            self._continue_from(page["checkpoints"][-1]["parent_checkpoint_id"])

    def result(self) -> dict[str, DeltaChannelHistory]:
        found: dict[str, DeltaChannelHistory] = {}
        for channel, writes in self._writes.items():
            found[channel] = {"writes": writes[::-1]}
            if channel in self._seeds:
                found[channel]["seed"] = self._seeds[channel]
        return found

    def _continue_from(self, checkpoint_id: str | None) -> None:
        if checkpoint_id is None:
            self._request = None
        elif self._request is not None:
            self._request |= {"checkpoint_id": checkpoint_id, "with_itself": True}

    def _add(self, ancestor: Message) -> None:
        by_path = sorted(ancestor["writes"], key=lambda write: (write["task_path"], write["task_id"], write["idx"]))
        for write in reversed(by_path):
            if write["channel"] in self._left:
                self._writes[write["channel"]].append((write["task_id"], write["channel"], self._load(write)))
        # The writes of a checkpoint lead to the next one, so those of the checkpoint with the value are needed, too.
        for stored in ancestor["values"]:
            if stored["channel"] in self._left and stored["type"] != "empty":
                self._seeds[stored["channel"]] = self._load(stored)
                self._left.remove(stored["channel"])
