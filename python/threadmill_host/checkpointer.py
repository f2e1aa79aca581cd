"""A LangGraph checkpointer that serializes here and stores through the service."""

import base64
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)

from .checkpoint_pages import CheckpointPages
from .commands import is_pending_resume
from .connection import ServiceConnection
from .delta_history import DeltaHistory
from .messages import MAX_MESSAGE_BYTES, Message, too_large
from .scope import Scope, own_config, scope_of
from .wire import to_wire


class HostCheckpointer(BaseCheckpointSaver[str]):
    """One instance serves all graphs and runs of a host; the scope in the config distinguishes them.

    It holds no state of its own: LangGraph makes shallow copies of it.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__()
        self._service = connection

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """Returns a counter, which orders versions, and random digits.

        With only integers, a run after a rolled-back or forked run would reuse its versions and read its values.
        """
        counter = 0 if current is None else int(str(current).split(".")[0])
        return f"{counter + 1:032}.{random.getrandbits(64):016x}"

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        known, request = self._lookup(config)
        found = known if request is None else self._service.request_sync(scope_of(config).run, request)
        return self._to_tuple(found, config) if found else None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        known, request = self._lookup(config)
        found = known if request is None else await self._service.request(scope_of(config).run, request)
        return self._to_tuple(found, config) if found else None

    def _lookup(self, config: RunnableConfig) -> tuple[Message | None, Message | None]:
        """Returns the checkpoint if the host has it, else the request for it."""
        configurable = config.get("configurable", {})
        thread_id = configurable.get("thread_id")
        if thread_id is None:
            return None, None
        scope = scope_of(config)
        checkpoint_ns = configurable.get("checkpoint_ns") or ""
        checkpoint_id = configurable.get("checkpoint_id") or None
        if scope.head and checkpoint_ns == "" and checkpoint_id is None:
            return scope.head.pop(), None
        staged = scope.staged_checkpoint(checkpoint_ns, checkpoint_id)
        if staged is not None:
            return staged, None
        request = {"op": "get", "thread_id": thread_id, "checkpoint_ns": checkpoint_ns}
        if checkpoint_id is not None:
            request["checkpoint_id"] = checkpoint_id
        if scope.without is not None:
            request["without"] = scope.without
        return None, request

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        pages = CheckpointPages(config, filter, before, limit)
        while (request := pages.next_request()) is not None:
            found = pages.take(self._service.request_sync(scope_of(pages.config).run, request))
            yield from (self._to_tuple(data, pages.config) for data in found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        pages = CheckpointPages(config, filter, before, limit)
        while (request := pages.next_request()) is not None:
            for data in pages.take(await self._service.request(scope_of(pages.config).run, request)):
                yield self._to_tuple(data, pages.config)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        history = DeltaHistory(config, channels, self.load)
        while (request := history.next_request()) is not None:
            history.take(self._service.request_sync(scope_of(config).run, request))
        return history.result()

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        history = DeltaHistory(config, channels, self.load)
        while (request := history.next_request()) is not None:
            history.take(await self._service.request(scope_of(config).run, request))
        return history.result()

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        write, stored = self._checkpoint_row(config, checkpoint, metadata, new_versions)
        if write is not None:
            self._service.request_sync(scope_of(config).run, write)
        return stored

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        write, stored = self._checkpoint_row(config, checkpoint, metadata, new_versions)
        if write is not None:
            await self._service.request(scope_of(config).run, write)
        return stored

    def _checkpoint_row(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> tuple[Message | None, RunnableConfig]:
        """Stores the checkpoint. If the caller must wait for its commit, returns the request instead of sending it."""
        configurable = config.get("configurable", {})
        thread_id = configurable.get("thread_id")
        if thread_id is None:
            raise ValueError("To store a checkpoint, set configurable.thread_id in the config.")
        checkpoint_ns = configurable.get("checkpoint_ns") or ""
        scope = scope_of(config)
        if scope.root_chunks is not None and checkpoint_ns == "":
            scope.root_chunks.take_undelivered()
        must_wait = scope.commits is None or scope.commits.must_wait_for(
            checkpoint_ns, checkpoint, metadata.get("source"), new_versions.keys()
        )
        values = checkpoint["channel_values"]
        # A staged checkpoint is read before it is stored, so it contains all values, not only changed ones.
        versions = checkpoint["channel_versions"] if scope.staged is not None else new_versions
        all_metadata = (
            get_checkpoint_metadata(config, metadata) if scope.metadata is None else {**scope.metadata, **metadata}
        )
        row = {
            "thread_id": thread_id,
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint["id"],
            "parent_checkpoint_id": configurable.get("checkpoint_id") or None,
            "checkpoint": to_wire({key: value for key, value in checkpoint.items() if key != "channel_values"}),
            "metadata": to_wire(all_metadata),
            "values": [
                {
                    "channel": channel,
                    "version": str(version),
                    **(self._dump(values[channel]) if channel in values else {"type": "empty", "value": ""}),
                }
                for channel, version in versions.items()
            ],
        }
        scope.head.clear()
        request = self._store(scope, {"op": "put", "checkpoint": row}, must_wait)
        return request, own_config(config, thread_id, checkpoint_ns, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        write = self._writes_row(config, writes, task_id, task_path)
        if write is not None:
            self._service.request_sync(None, write)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        write = self._writes_row(config, writes, task_id, task_path)
        if write is not None:
            await self._service.request(None, write)

    def _writes_row(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Message | None:
        configurable = config.get("configurable", {})
        if configurable.get("thread_id") is None or configurable.get("checkpoint_id") is None:
            raise ValueError("To store pending writes, set thread_id and checkpoint_id in configurable.")
        rows = [
            {
                "task_id": task_id,
                "task_path": task_path,
                "idx": WRITES_IDX_MAP.get(channel, position),
                "channel": channel,
                **self._dump(value),
            }
            for position, (channel, value) in enumerate(writes)
        ]
        at = {
            "thread_id": configurable["thread_id"],
            "checkpoint_ns": configurable.get("checkpoint_ns") or "",
            "checkpoint_id": configurable["checkpoint_id"],
            "writes": rows,
        }
        # Writes of tasks take effect with the next checkpoint, so a run does not wait for them.
        return self._store(scope_of(config), {"op": "put_writes", **at}, must_wait=False)

    def _store(self, scope: Scope, write: Message, must_wait: bool) -> Message | None:
        if scope.stage(write):
            return None
        if scope.run is None or must_wait:
            return write
        self._service.post({"type": "store", **scope.run.fields(), "write": write})
        return None

    def delete_thread(self, thread_id: str) -> None:
        """Always fails, because the service refuses this request: threads are deleted through the API."""
        self._service.request_sync(None, {"op": "delete_thread", "thread_id": thread_id})

    async def adelete_thread(self, thread_id: str) -> None:
        await self._service.request(None, {"op": "delete_thread", "thread_id": thread_id})

    # Serialization

    def _dump(self, value: Any) -> Message:
        kind, data = self.serde.dumps_typed(value)
        # Before it is copied: orjson ends the process when it cannot get memory.
        if len(data) * 4 // 3 > MAX_MESSAGE_BYTES:
            raise ValueError(too_large("checkpoint", len(data)))
        return {"type": kind, "value": base64.b64encode(data).decode()}

    def load(self, stored: Message) -> Any:
        return self.serde.loads_typed((stored["type"], base64.b64decode(stored["value"])))

    def _to_tuple(self, data: Message, config: RunnableConfig) -> CheckpointTuple:
        thread_id, checkpoint_ns = data["thread_id"], data["checkpoint_ns"]
        checkpoint = orjson.loads(data["checkpoint"])
        checkpoint["channel_values"] = {
            stored["channel"]: self.load(stored) for stored in data["values"] if stored["type"] != "empty"
        }
        is_hidden = scope_of(config).is_resume_consumed
        writes = sorted(data["writes"], key=lambda write: (write["task_path"], write["task_id"], write["idx"]))
        parent = data.get("parent_checkpoint_id")
        return CheckpointTuple(
            config=own_config(config, thread_id, checkpoint_ns, data["checkpoint_id"]),
            checkpoint=checkpoint,
            metadata=orjson.loads(data["metadata"]),
            parent_config=own_config(config, thread_id, checkpoint_ns, parent) if parent else None,
            pending_writes=[
                (write["task_id"], write["channel"], self.load(write))
                for write in writes
                if not (is_hidden and is_pending_resume(write["task_id"], write["channel"]))
            ],
        )
