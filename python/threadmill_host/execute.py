"""Executes a run."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from langgraph.pregel import Pregel

from .commit_points import CommitPoints
from .execution import Execution
from .messages import Message, RunKey
from .outcome import failed, finished
from .root_chunks import RootChunks
from .run_input import checkpoint_metadata, run_input, state_at_breakpoint, stream_options
from .scope import Scope
from .stream_modes import StreamedState, StreamTranslator, source_modes
from .thread_protocol import stream_thread_protocol
from .users import with_user

Graph = Pregel[Any, Any, Any, Any]


async def execute_run(execution: Execution) -> tuple[Message, BaseException | None]:
    """Returns the outcome, and the error that ended the run. Never raises: an error is returned as an outcome."""
    order, controls = execution.order, execution.controls
    streamed = StreamedState()
    scope = Scope(
        run=RunKey(order["run_id"], order["epoch"]), metadata=checkpoint_metadata(order), head=[execution.head]
    )
    # LangGraph records the consumption of a resume value only in memory; a later claim would pass it to the next
    # interrupt, too.
    scope.is_resume_consumed = execution.resume_consumed
    config = with_user(execution.kwargs.get("config") or {})
    task = asyncio.ensure_future(_execute(execution, config, scope, streamed))
    controls.task = task
    if controls.abort_reason is not None:
        task.cancel()
    # An abort cancels the inner task alone.
    await asyncio.wait([task])
    if not task.cancelled():
        return task.result()
    return await failed(asyncio.CancelledError(), None, execution, scope), None


async def _execute(
    execution: Execution, config: Mapping[str, Any], scope: Scope, streamed: StreamedState
) -> tuple[Message, BaseException | None]:
    order, controls = execution.order, execution.controls
    use = execution.graphs.use(
        order["graph_id"], config, "threads.create_run", context=execution.kwargs.get("context"), is_run=True
    )
    try:
        async with use as graph:
            scope.commits = CommitPoints(execution.kwargs.get("durability"), graph)
            try:
                await _stream(graph, config, execution, scope, streamed)
                controls.task = None
                if controls.abort_reason is None:
                    return await finished(graph, order, scope, streamed), None
                return await failed(None, graph, execution, scope), None
            except BaseException as error:
                controls.task = None
                return await failed(error, graph, execution, scope), error
    except BaseException as error:
        return await failed(error, None, execution, scope), error


async def _stream(
    graph: Graph, config: Mapping[str, Any], execution: Execution, scope: Scope, streamed: StreamedState
) -> None:
    kwargs, emit = execution.kwargs, execution.emit
    stopped = await state_at_breakpoint(graph, execution, scope)
    if stopped is not None:
        streamed.last_values, streamed.has_values, streamed.interrupts = stopped.values, True, []
        return
    own_config, options = stream_options(config, execution, scope)
    graph, own_config = _with_bound_callbacks(graph, own_config)
    graph_input = await run_input(graph, execution, scope)
    if kwargs.get("stream_protocol") == "v2":
        await stream_thread_protocol(graph, graph_input, own_config, options, emit, streamed, execution.room, scope)
        return
    modes: list[str] = kwargs["stream_mode"]
    sources = source_modes(modes)
    translator = StreamTranslator(modes, emit, streamed)
    wants_subgraphs = bool(kwargs.get("subgraphs"))
    # With RootChunks, the custom events of subgraphs arrive in any case: their namespace shows which they are.
    has_namespaces = wants_subgraphs or "custom" in sources
    options.update(stream_mode=sources, subgraphs=has_namespaces)
    chunks_of_root = scope.root_chunks = RootChunks(sources, translator.take)
    own_config = chunks_of_root.with_stream(own_config)

    def take(chunk: Any) -> None:
        namespace, mode, data = chunk if has_namespaces else ((), *chunk)
        if wants_subgraphs or not namespace:
            chunks_of_root.deliver(namespace, mode, data)

    if "events" not in modes:
        async with aclosing(_generator(graph.astream(graph_input, own_config, **options))) as chunks:
            async for chunk in chunks:
                take(chunk)
                await execution.room()
        return
    run_id = str(own_config["run_id"])
    events: Any = graph.astream_events(graph_input, own_config, version="v2", **options)
    async with aclosing(events):
        async for event in events:
            # The chunks of the root graph are those of graph.astream(); the rest are LangChain events.
            if event["event"] == "on_chain_stream" and event["run_id"] == run_id:
                take(event["data"]["chunk"])
            else:
                translator.take_event(event)
            await execution.room()


def _with_bound_callbacks(graph: Graph, config: Any) -> tuple[Graph, Any]:
    """LangGraph 1.2.0 to 1.2.2 replaces the callbacks that are bound to the graph by those of the config."""
    bound = (graph.config or {}).get("callbacks")
    if not bound or "callbacks" not in config:
        return graph, config
    if isinstance(bound, list):
        callbacks: Any = [*bound, *config["callbacks"]]
    else:
        callbacks = bound.copy()
        for handler in config["callbacks"]:
            callbacks.add_handler(handler)
    unbound = {key: value for key, value in (graph.config or {}).items() if key != "callbacks"}
    return graph.copy({"config": unbound}), {**config, "callbacks": callbacks}


def _generator(chunks: AsyncIterator[Any]) -> Any:
    return chunks
