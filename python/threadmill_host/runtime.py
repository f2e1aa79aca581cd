"""Receives the messages of the service."""

import asyncio
import os
import sys
import time
from typing import Any

from langgraph.errors import GraphBubbleUp

from .asgi import AsgiServer
from .bodies import BodyExecutor
from .checkpointer import HostCheckpointer
from .connection import ServiceConnection
from .context import CURRENT_RUN, CurrentRun
from .execute import execute_run
from .execution import Execution, RunControls
from .importing import format_traceback
from .limits import MemoryLimit, resident_megabytes
from .load import LoadedGraphs, chdir_to_project
from .logs import HostLogs, LogSender
from .loopback import ServiceApp, install
from .messages import Message, RunKey
from .process import wait_for_debugger
from .queries import run_query
from .store import HostStore
from .trace_sink import TraceSink
from .tracer import tracer_of
from .wire import text_of


class TokenRequests:
    """Requests tokens for a run."""

    def __init__(self, connection: ServiceConnection, run: RunKey) -> None:
        self._connection = connection
        self._run = run

    async def request(self, fields: Message) -> Any:
        return await self._connection.request(self._run, {**fields, "op": "token"})

    def request_sync(self, fields: Message) -> Any:
        return self._connection.request_sync(self._run, {**fields, "op": "token"})


class Runtime:
    """Executes runs and answers queries until the service ends the host."""

    def __init__(
        self, connection: ServiceConnection, loop: asyncio.AbstractEventLoop, logs: HostLogs, sender: LogSender
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._logs = logs
        self._sender = sender
        self._runs: dict[RunKey, RunControls] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._graphs: LoadedGraphs | None = None
        self._app: AsgiServer | None = None
        self._bodies: BodyExecutor | None = None
        self._early: list[Message] = []
        self._unknown: set[str] = set()
        self.load_message: Message | None = None
        self.is_stopped = False

    def load(self, message: Message) -> None:
        """Imports the project in the main thread, in which no event loop runs: modules may run loops of their own."""
        setup = message["setup"]
        if message["role"] == "runs":
            wait_for_debugger(self._sender)
        memory = MemoryLimit(message.get("memory_mb"))
        self._bodies = BodyExecutor(message.get("jobs") or 10, self._loop, memory)
        self._loop.set_default_executor(self._bodies)
        chdir_to_project(setup)
        service = ServiceApp(self._connection)
        install(service)
        graphs = LoadedGraphs(setup, HostCheckpointer(self._connection), HostStore())
        self._logs.add_handler()
        for graph_id, traceback in graphs.tracebacks.items():
            self._sender.send("error", "graph failed to load", {"graph_id": graph_id, "traceback": traceback})
        for field, traceback in graphs.module_tracebacks.items():
            self._sender.send("error", "module failed to load", {"module": field, "traceback": traceback})
        self._graphs = graphs
        self._app = AsgiServer(
            graphs.app, self._connection, service, lambda message, fields: self._sender.send("error", message, fields)
        )
        self._connection.post({"type": "loaded", "failures": graphs.failures, "warnings": graphs.warnings})
        self._loop.call_soon(self._receive_early)

    def _receive_early(self) -> None:
        early, self._early = self._early, []
        self.receive(early)

    def receive(self, messages: list[Message]) -> None:
        """Called in the event loop."""
        for message in messages:
            if message["type"] == "load":
                self.load_message = message
                self._loop.stop()
            elif self._graphs is None and message["type"] == "end":
                os._exit(0)
            elif self._graphs is None:
                self._early.append(message)
            else:
                self._receive(message, self._graphs)

    def _receive(self, message: Message, graphs: LoadedGraphs) -> None:
        match message["type"]:
            case "start":
                order = message["order"]
                key = RunKey(order["run_id"], order["epoch"])
                controls = self._runs[key] = RunControls()
                self._start_task(self._execute(message, key, controls, graphs))
            case "abort":
                if controls_of_run := self._runs.get(_key_of(message)):
                    controls_of_run.abort(message["reason"])
            case "drain":
                if controls_of_run := self._runs.get(_key_of(message)):
                    controls_of_run.drain()
            case "taken":
                self._connection.acknowledge(_key_of(message), message["chars"])
            case "query":
                self._start_task(self._answer(message, graphs))
            case "ping":
                self._connection.post({"type": "pong", "id": message["id"], **self._health(graphs)})
            case "end":
                self._start_task(self._end(message.get("grace_ms") or 0))
            case other if other not in self._unknown:
                self._unknown.add(other)
                self._sender.send("warn", "unknown message of the service ignored", {"type": other})

    def _start_task(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _health(self, graphs: LoadedGraphs) -> Message:
        handed_at = self._connection.handed_at
        now = self._loop.time()
        return {
            "lag_ms": round((time.monotonic() - handed_at) * 1000) if handed_at else 0,
            "rss_mb": resident_megabytes(),
            "oldest_call_ms": graphs.oldest_call_ms(),
            "abandoned": [
                {**key.fields(), "for_ms": round((now - controls.aborted_at) * 1000)}
                for key, controls in self._runs.items()
                if controls.aborted_at is not None
            ],
        }

    async def _execute(self, message: Message, key: RunKey, controls: RunControls, graphs: LoadedGraphs) -> None:
        connection, order = self._connection, message["order"]
        CURRENT_RUN.set(CurrentRun(key, connection))
        connection.post({"type": "started", **key.fields()})
        # The message must be sent before the graph runs. If the graph blocked or killed the process first, the run
        # would count as not started and would be assigned to one host after another.
        connection.flush()
        await asyncio.sleep(0)
        sink = self._sink_of(message, key)
        execution = Execution(
            order=order,
            head=message.get("head"),
            prior_writes=message.get("prior_writes") or [],
            resume_consumed=bool(message.get("resume_consumed")),
            graphs=graphs,
            controls=controls,
            emit=lambda event, data: connection.emit(key, event, data),
            room=lambda: connection.room_for(key),
            request_token=TokenRequests(connection, key),
            tracer=None if sink is None else tracer_of(sink),
        )
        outcome, error = await execute_run(execution)
        if outcome["ended"] == "error" and error is not None and not isinstance(error, GraphBubbleUp):
            self._sender.send("error", "run failed", {**outcome["error"], "traceback": format_traceback(error)}, key)
        # A later run of the thread must not overlap with a node of this one. After a success, all nodes have ended: other calls in threads
        # are those of the project's code, which may go on.
        if self._bodies is not None and (outcome["ended"] != "success" or controls.abort_reason is not None):
            await self._bodies.wait_for(key)
        self._logs.flush_run(key)
        self._runs.pop(key, None)
        connection.forget(key)
        if controls.abort_reason is not None:
            outcome = {**outcome, "ended": "aborted"}
            outcome.pop("error", None)
        outcome = self._post_outcome(outcome, key)
        if sink is not None:
            sink.finish(outcome, controls.abort_reason)

    def _sink_of(self, message: Message, key: RunKey) -> TraceSink | None:
        trace = message.get("trace")
        if trace is None:
            return None

        def send(runs: str, is_last: bool) -> None:
            self._connection.post({"type": "trace", **key.fields(), "runs": runs, "is_last": is_last})

        return TraceSink(message["order"], trace, send, self._loop)

    def _post_outcome(self, outcome: Message, key: RunKey) -> Message:
        """Returns the outcome that was sent: an error if the output is too large."""
        try:
            self._connection.post({"type": "done", **key.fields(), "outcome": outcome})
        except ValueError as error:
            failure = {"error": "ValueError", "message": text_of(str(error))}
            outcome = {"ended": "error", "output": "null", "error": failure}
            self._connection.post({"type": "done", **key.fields(), "outcome": outcome})
        return outcome

    async def _answer(self, message: Message, graphs: LoadedGraphs) -> None:
        assert self._app is not None
        result = await run_query(message, graphs, self._app)
        try:
            self._connection.post(result)
        except ValueError as error:
            failure = {"name": "ValueError", "message": str(error)}
            self._connection.post({"type": "query_result", "id": message["id"], "error": failure})

    async def _end(self, grace_ms: int) -> None:
        """Stops the runs, exits the context managers, sends the remaining messages and ends the process."""
        deadline = self._loop.time() + grace_ms / 1000
        for controls in list(self._runs.values()):
            controls.drain()
            if controls.task is not None:
                controls.task.cancel()
        if self._app is not None:
            await self._app.stop(max(0.0, deadline - self._loop.time()))
        others = [task for task in self._tasks if task is not asyncio.current_task()]
        if others:
            await asyncio.wait(others, timeout=max(0.0, deadline - self._loop.time()))
        tracer = sys.modules.get("langchain_core.tracers.langchain")
        if tracer is not None and os.environ.get("LANGSMITH_TRACING", os.environ.get("LANGCHAIN_TRACING_V2")):
            timeout = max(0.1, deadline - self._loop.time())
            await asyncio.wait([self._loop.run_in_executor(None, tracer.wait_for_all_tracers)], timeout=timeout)
        self._logs.flush_run(None)
        self._connection.flush()
        while not self._connection.is_sent() and self._loop.time() < deadline:  # noqa: ASYNC110 - the I/O thread sends
            await asyncio.sleep(0.005)
        if self._bodies is not None and self._bodies.has_running():
            os._exit(0)
        self.is_stopped = True
        self._loop.stop()


def _key_of(message: Message) -> RunKey:
    return RunKey(message["run_id"], message["epoch"])
