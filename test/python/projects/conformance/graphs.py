"""Runs LangGraph's conformance tests against the checkpointer of the host."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from threadmill_host.scope import SCOPE, Scope, scope_of


class State(TypedDict, total=False):
    is_sync: bool
    # The service refuses the deletion of threads by graphs.
    deletes_threads: bool
    results: dict[str, Any]


class SaverOfRun(BaseCheckpointSaver[str]):
    """The checkpointer of the host. LangGraph's configs name the run, those of the tests do not."""

    def __init__(self, saver: Any, run: Any) -> None:
        super().__init__()
        self.saver = saver
        self._scope = Scope(run=run)

    def _own(self, config: Any) -> Any:
        return config and {**config, "configurable": {**config["configurable"], SCOPE: self._scope}}

    def get_next_version(self, current: Any, channel: None) -> str:
        return str(self.saver.get_next_version(current, channel))

    async def aget_tuple(self, config: Any) -> Any:
        return await self.saver.aget_tuple(self._own(config))

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        async for found in self.saver.alist(self._own(config), **options):
            yield found

    async def aput(self, config: Any, *arguments: Any) -> Any:
        return await self.saver.aput(self._own(config), *arguments)

    async def aput_writes(self, config: Any, *arguments: Any, **options: Any) -> None:
        await self.saver.aput_writes(self._own(config), *arguments, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.saver.adelete_thread(thread_id)


class SyncCalls(SaverOfRun):
    """Calls the synchronous methods, from the thread of the event loop."""

    async def aget_tuple(self, config: Any) -> Any:
        return self.saver.get_tuple(self._own(config))

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        for found in self.saver.list(self._own(config), **options):
            yield found

    async def aput(self, config: Any, *arguments: Any) -> Any:
        return self.saver.put(self._own(config), *arguments)

    async def aput_writes(self, config: Any, *arguments: Any, **options: Any) -> None:
        self.saver.put_writes(self._own(config), *arguments, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        self.saver.delete_thread(thread_id)


async def node(state: State, config: RunnableConfig) -> State:
    saver = config["configurable"]["__pregel_checkpointer"]

    skipped = {"delete_for_runs", "copy_thread", "prune", *([] if state.get("deletes_threads") else ["delete_thread"])}

    @checkpointer_test(name="HostCheckpointer", skip_capabilities=skipped)
    async def create() -> AsyncGenerator[Any, None]:
        kind = SyncCalls if state.get("is_sync") else SaverOfRun
        yield kind(saver, scope_of(config).run)

    report = await validate(create)
    return {
        "results": {
            name: [result.tests_passed, result.failures] for name, result in report.results.items() if result.detected
        }
    }


builder = StateGraph(State)
builder.add_node("node", node)
builder.add_edge(START, "node")
