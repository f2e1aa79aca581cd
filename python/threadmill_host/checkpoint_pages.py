"""Lists of checkpoints, page by page."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from .messages import Message

PAGE_SIZE = 50


class CheckpointPages:
    """The requests for a list of checkpoints, newest first."""

    def __init__(
        self,
        config: RunnableConfig | None,
        metadata: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self.config: RunnableConfig = config or {}
        configurable = self.config.get("configurable", {})
        self._request: Message = {"op": "list"}
        for name in ("thread_id", "checkpoint_ns", "checkpoint_id"):
            if configurable.get(name) is not None:
                self._request[name] = configurable[name]
        if metadata:
            self._request["metadata"] = metadata
        if before is not None and before.get("configurable", {}).get("checkpoint_id"):
            self._request["before"] = before["configurable"]["checkpoint_id"]
        self._left = limit
        self._is_last = False

    def next_request(self) -> Message | None:
        if self._is_last or (self._left is not None and self._left <= 0):
            return None
        self._request["limit"] = PAGE_SIZE if self._left is None else min(self._left, PAGE_SIZE)
        return dict(self._request)

    def take(self, page: Message) -> Sequence[Message]:
        found: Sequence[Message] = page["checkpoints"]
        self._is_last = len(found) == 0 or (page["isWhole"] and len(found) < self._request["limit"])
        if self._left is not None:
            self._left -= len(found)
        if found:
            self._request["before"] = found[-1]["checkpoint_id"]
        return found
