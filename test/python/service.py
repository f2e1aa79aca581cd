"""A test double of the TypeScript service: it starts a real host process and keeps its rows in memory."""

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Message = dict[str, Any]


class Rows:
    """The tables of checkpoints, values and writes."""

    def __init__(self) -> None:
        self.checkpoints: dict[tuple[str, str, str], Message] = {}
        self.values: dict[tuple[str, str, str, str], Message] = {}
        self.writes: dict[tuple[str, str, str], dict[tuple[str, int], Message]] = {}
        self.ancestors_per_page = 1000

    def put(self, row: Message) -> None:
        key = (row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
        for value in row["values"]:
            self.values[(*key[:2], value["channel"], value["version"])] = value
        self.checkpoints[key] = {name: item for name, item in row.items() if name != "values"}

    def put_writes(self, row: Message) -> None:
        stored = self.writes.setdefault((row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]), {})
        for write in row["writes"]:
            key = (write["task_id"], write["idx"])
            if write["idx"] < 0 or key not in stored:
                stored[key] = write

    def read(self, key: tuple[str, str, str]) -> Message:
        row = self.checkpoints[key]
        versions = json.loads(row["checkpoint"])["channel_versions"]
        found = [self.values.get((*key[:2], channel, str(version))) for channel, version in versions.items()]
        writes = list(self.writes.get(key, {}).values())
        return {**row, "values": [value for value in found if value], "writes": writes}

    def newest_first(self, thread_id: str | None, checkpoint_ns: str | None) -> list[tuple[str, str, str]]:
        keys = [
            key
            for key in self.checkpoints
            if thread_id in (None, key[0]) and (checkpoint_ns is None or key[1] == checkpoint_ns)
        ]
        return sorted(keys, key=lambda key: key[2], reverse=True)

    def get(self, request: Message) -> Message | None:
        checkpoint_id = request.get("checkpoint_id")
        for key in self.newest_first(request["thread_id"], request["checkpoint_ns"]):
            if checkpoint_id not in (None, key[2]):
                continue
            if request.get("without") and self.run_of(key) == request["without"]:
                continue
            return self.read(key)
        return None

    def run_of(self, key: tuple[str, str, str]) -> Any:
        return json.loads(self.checkpoints[key]["metadata"]).get("run_id")

    def list(self, request: Message) -> Message:
        found = []
        for key in self.newest_first(request.get("thread_id"), request.get("checkpoint_ns")):
            if request.get("checkpoint_id") not in (None, key[2]):
                continue
            if request.get("before") is not None and key[2] >= request["before"]:
                continue
            metadata = json.loads(self.checkpoints[key]["metadata"])
            if any(metadata.get(name) != value for name, value in (request.get("metadata") or {}).items()):
                continue
            found.append(self.read(key))
            if len(found) == request["limit"]:
                break
        return {"checkpoints": found, "isWhole": True}

    def ancestors(self, request: Message) -> Message:
        row = self.get(request)
        if row is not None and not request.get("with_itself"):
            row = self._parent(row)
        found: list[Message] = []
        left = set(request["channels"])
        while row is not None and left:
            if len(found) == self.ancestors_per_page:
                return {"checkpoints": found, "isWhole": False}
            own = {name: [one for one in row[name] if one["channel"] in left] for name in ("values", "writes")}
            found.append({**{name: row[name] for name in ("checkpoint_id", "parent_checkpoint_id")}, **own})
            left -= {value["channel"] for value in own["values"] if value["type"] != "empty"}
            row = self._parent(row)
        return {"checkpoints": found, "isWhole": True}

    def _parent(self, row: Message) -> Message | None:
        key = (row["thread_id"], row["checkpoint_ns"], row["parent_checkpoint_id"])
        return self.read(key) if key in self.checkpoints else None

    def delete_thread(self, thread_id: str) -> None:
        for table in (self.checkpoints, self.values, self.writes):
            for key in [key for key in table if key[0] == thread_id]:
                del table[key]  # type: ignore[arg-type]

    def head(self, thread_id: str) -> Message | None:
        return self.get({"thread_id": thread_id, "checkpoint_ns": ""})


class Service:
    """One host process and the messages that it has sent."""

    def __init__(self, rows: Rows | None = None) -> None:
        self.forget(rows)
        self._changed = asyncio.Condition()
        self._query_id = 0

    def forget(self, rows: Rows | None = None) -> None:
        """Removes what earlier tests have left, for the next test on this host."""
        self.rows = rows or Rows()
        self.received: list[Message] = []
        self.requests: list[Message] = []
        self.events: dict[str, list[tuple[str, Any]]] = {}
        self.acknowledges = True
        self.deletes_threads = False
        self.tokens: dict[str, Any] = {}
        self.items: dict[tuple[tuple[str, ...], str], Message] = {}
        self.put_delay = 0.0
        # The chunks of request bodies by request id, and those of the response to each request of the project's code.
        self.bodies: dict[int, list[bytes]] = {}
        self.response: list[bytes] = []
        self._responses: dict[int, list[bytes]] = {}
        self._started: set[tuple[str, int]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether the process can serve another test: it lives, and all its runs have ended."""
        types = {message["type"] for message in self.received}
        done = {(message["run_id"], message["epoch"]) for message in self.received if message["type"] == "done"}
        return self.process.poll() is None and "exit" not in types and self._started <= done

    async def start(self, env: dict[str, str] | None = None) -> None:
        parent, child = socket.socketpair()
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **(env or {})}

        def use_descriptor_3() -> None:
            os.dup2(child.fileno(), 3)

        self.process = subprocess.Popen(
            [sys.executable, "-P", "-X", "utf8", "-m", "threadmill_host"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            close_fds=False,
            preexec_fn=use_descriptor_3,
            start_new_session=True,
        )
        child.close()
        self.socket = parent
        reader, self.writer = await asyncio.open_connection(sock=parent, limit=80_000_000)
        self._reading = asyncio.create_task(self._read(reader))

    async def load(
        self, project: Path, graphs: dict[str, str], role: str = "runs", memory_mb: int | None = None, **setup: Any
    ) -> Message:
        loaded = []
        for graph_id, path in graphs.items():
            module, _, name = path.rpartition(":")
            is_file = module.endswith(".py")
            file = os.path.normpath(project / module) if is_file else None
            loaded.append(
                {
                    "graph_id": graph_id,
                    "file": file,
                    "module": None if is_file else module,
                    "export_name": name,
                }
            )
        self.send(
            {
                "type": "load",
                "setup": {"graphs": loaded, "project_dir": str(project), "sys_path": [], **setup},
                "role": role,
                "jobs": 10,
                "memory_mb": memory_mb,
            }
        )
        return await self.wait_for(lambda message: message["type"] == "loaded")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            # The last frame of a host that dies may be incomplete.
            while (line := await reader.readline()).endswith(b"\n"):
                for message in json.loads(line):
                    await self._receive(message)
        except ConnectionError:
            # The host died with unread messages, or before a reply was written.
            pass
        async with self._changed:
            self.received.append({"type": "exit"})
            self._changed.notify_all()

    async def _receive(self, message: Message) -> None:
        match message["type"]:
            case "events":
                for event, data in message["events"]:
                    self.events.setdefault(message["run_id"], []).append((event, json.loads(data)))
                    if self.acknowledges:
                        run = {"run_id": message["run_id"], "epoch": message["epoch"]}
                        self.send({"type": "taken", **run, "chars": len(data)})
            case "store":
                self._write(message["write"])
            case "request":
                self.requests.append(message)
                asyncio.create_task(self._answer(message))
        async with self._changed:
            self.received.append(message)
            self._changed.notify_all()

    def _write(self, write: Message) -> None:
        if write["op"] == "put":
            self.rows.put(write["checkpoint"])
        else:
            self.rows.put_writes(write)

    async def _answer(self, message: Message) -> None:
        request = message["request"]
        reply: Message = {"type": "reply", "id": message["id"]}
        match request["op"]:
            case "get":
                reply["value"] = self.rows.get(request)
            case "list":
                reply["value"] = self.rows.list(request)
            case "ancestors":
                reply["value"] = self.rows.ancestors(request)
            case "put" | "put_writes":
                self._write(request)
                if self.put_delay:
                    await asyncio.sleep(self.put_delay)
            case "delete_thread" if self.deletes_threads:
                self.rows.delete_thread(request["thread_id"])
            case "token":
                reply["value"] = self.tokens.get(request["provider"], {"auth_url": "https://auth.test/1"})
            case "fetch" | "app_fetch":
                self._responses[(request.get("request") or request)["id"]] = list(self.response)
                reply["value"] = {"status": 200, "headers": [["content-type", "application/json"]], "has_body": True}
            case "app_body" | "fetch_read":
                chunks = (self.bodies if request["op"] == "app_body" else self._responses).get(request["id"])
                if chunks:
                    reply["bytes"] = base64.b64encode(chunks.pop(0)).decode()
            case "fetch_cancel":
                pass
            case "store":
                reply["value"] = [self._operate(operation) for operation in request["operations"]]
            case other:
                reply["error"] = {"name": "Error", "message": f"{other} is refused"}
        self.send(reply)

    def _operate(self, operation: Message) -> Any:
        now = "2026-01-01T00:00:00.000Z"
        if operation["kind"] == "namespaces":
            return sorted({namespace for namespace, _ in self.items})
        if operation["kind"] == "search":
            prefix = tuple(operation["namespace_prefix"])
            return [item for (namespace, _), item in self.items.items() if namespace[: len(prefix)] == prefix]
        key = (tuple(operation["namespace"]), operation["key"])
        if operation["kind"] == "get":
            return self.items.get(key)
        self.items.pop(key, None)
        if operation["kind"] == "put":
            self.items[key] = {
                "namespace": list(key[0]),
                "key": key[1],
                "value": json.loads(operation["value"]),
                "created_at": now,
                "updated_at": now,
            }
        return None

    def send(self, *messages: Message) -> None:
        if not self.writer.is_closing():
            self.writer.write(json.dumps(list(messages)).encode() + b"\n")

    async def wait_for(self, matches: Any, timeout: float = 30) -> Message:
        async def find() -> Message:
            async with self._changed:
                while True:
                    for message in self.received:
                        if matches(message):
                            return message
                    await self._changed.wait()

        return await asyncio.wait_for(find(), timeout)

    # Runs

    def start_run(self, graph_id: str, thread_id: str | None = None, **options: Any) -> Message:
        """Sends a run, and returns its order."""
        thread_id = thread_id or str(uuid.uuid4())
        epoch = options.pop("epoch", 1)
        run_id = options.pop("run_id", None) or str(uuid.uuid4())
        prior_writes = options.pop("prior_writes", [])
        trace = options.pop("trace", None)
        kwargs = {"input": None, "config": {}, "stream_mode": ["values"], "subgraphs": False, **options}
        order = {
            "run_id": run_id,
            "epoch": epoch,
            "attempt": epoch,
            "thread_id": thread_id,
            "assistant_id": "b1a2c3d4-0000-4000-8000-000000000000",
            "graph_id": graph_id,
            "kwargs": kwargs,
        }
        self._started.add((run_id, epoch))
        head = self.rows.head(thread_id)
        start = {
            "type": "start",
            "order": order,
            "head": head,
            "prior_writes": prior_writes,
            "resume_consumed": any(
                write["channel"] == "__resume__" and write["task_id"] != str(uuid.UUID(int=0)) for write in prior_writes
            ),
        }
        self.send({**start, **({} if trace is None else {"trace": trace})})
        return order

    async def outcome(self, order: Message, timeout: float = 30) -> Message:
        done = await self.wait_for(
            lambda message: (
                message["type"] == "done" and (message["run_id"], message["epoch"]) == (order["run_id"], order["epoch"])
            ),
            timeout,
        )
        outcome: Message = done["outcome"]
        return outcome

    async def run(self, graph_id: str, thread_id: str | None = None, **options: Any) -> tuple[Message, Message]:
        order = self.start_run(graph_id, thread_id, **options)
        return await self.outcome(order), order

    def events_of(self, order: Message, name: str | None = None) -> list[Any]:
        events = self.events.get(order["run_id"], [])
        return events if name is None else [data for event, data in events if event == name]

    async def wait_for_event(self, order: Message, name: str, timeout: float = 30) -> Any:
        await self.wait_for(
            lambda message: (
                message["type"] == "events"
                and message["run_id"] == order["run_id"]
                and any(event == name for event, _ in message["events"])
            ),
            timeout,
        )
        return self.events_of(order, name)[0]

    async def query(self, kind: str, graph_id: str, **fields: Any) -> Any:
        self._query_id += 1
        query_id = self._query_id
        query = {"kind": kind, "graph": {"graph_id": graph_id, "config": fields.pop("config", {})}, **fields}
        self.send({"type": "query", "id": query_id, "query": query})
        result = await self.wait_for(lambda message: message["type"] == "query_result" and message["id"] == query_id)
        if "error" in result:
            raise RuntimeError(f"{result['error']['name']}: {result['error']['message']}")
        return result.get("value")

    def logs(self) -> list[Message]:
        return [message for message in self.received if message["type"] == "log"]

    async def exit_code(self, timeout: float = 10) -> int:
        return await asyncio.to_thread(self.process.wait, timeout)

    async def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        await asyncio.to_thread(self.process.wait)
        self._reading.cancel()
        self.writer.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
