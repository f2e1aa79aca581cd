"""LangChain's tracer of a run, which creates the runs of the trace."""

import logging
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from langchain_core.tracers.langchain import LangChainTracer
from langchain_core.tracers.schemas import Run
from langsmith import get_tracing_context, utils
from langsmith.run_trees import get_cached_client

from .outcome import describe_error
from .trace_sink import TraceSink

_logger = logging.getLogger(__name__)


def tracer_of(sink: TraceSink) -> LangChainTracer | None:
    """Returns the tracer of a run. LangChain then adds no tracer of its own. Never raises: if it fails, the trace has only a root."""
    client: Any = TracingClient(sink)
    try:
        return RunTracer(client=client, project_name=sink.trace["project_name"])
    except Exception as error:
        _logger.warning("The run cannot be traced: %r", error)
        return None


class TracingClient:
    """Passes runs to the sink and, if the project traces to another server, to the project's client."""

    def __init__(self, sink: TraceSink) -> None:
        self.sink = sink
        self._own: Any = None
        self._project: str | None = None
        try:
            if utils.tracing_is_enabled() is True:
                context = get_tracing_context()
                self._own = context.get("client") or get_cached_client()
                self._project = context.get("project_name") or utils.get_tracer_project()
        except Exception as error:
            _logger.warning("The traces of this project cannot be sent to LangSmith: %r", error)

    def create_run(self, **run: Any) -> None:
        self.sink.create_run(**run)
        if self._own is not None:
            self._own.create_run(**{**run, "session_name": self._project})

    def update_run(self, run_id: Any, **run: Any) -> None:
        self.sink.update_run(run_id, **run)
        if self._own is not None:
            self._own.update_run(run_id, **{**run, "session_name": self._project})

    def flush(self) -> None:
        if self._own is not None:
            self._own.flush()

    def __getattr__(self, name: str) -> Any:
        """Returns None without the project's client: functions traced by LangSmith fail without `otel_exporter`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._own, name, None)


class RunTracer(LangChainTracer):
    """Gives the root its parent and the start time of the first attempt, so that all attempts are one trace.

    LangChain creates copies of a tracer with its class and its client.
    """

    def _start_trace(self, run: Run) -> None:
        # Otherwise, runs would be sent to the servers in LANGSMITH_RUNS_ENDPOINTS instead of the client.
        run.replicas = []
        client: Any = self.client
        sink: TraceSink = client.sink
        if str(run.id) == sink.run_id:
            run.start_time = datetime.fromtimestamp(sink.trace["started_at"] / 1000, UTC)
            parent = sink.trace.get("parent") or {}
            if parent.get("kind") == "run":
                path = [UUID(segment[-36:]) for segment in parent["dotted_order"].split(".")]
                self.order_map[path[-1]] = (path[0], parent["dotted_order"])
                run.parent_run_id = path[-1]
        super()._start_trace(run)

    @staticmethod
    def _get_stacktrace(error: BaseException) -> str:
        return _TracedError(error)


class _TracedError(str):
    """The stack trace that LangChain's tracers report, with a brief description of the error."""

    brief: str

    def __new__(cls, error: BaseException) -> "_TracedError":
        text = super().__new__(cls, LangChainTracer._get_stacktrace(error))
        described = describe_error(error)
        text.brief = f"{described['error']}: {described['message']}"
        return text
