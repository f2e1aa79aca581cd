"""Runs LangGraph's conformance tests against the checkpointer of the host."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    is_sync: bool
    results: dict[str, Any]


class SyncCalls(BaseCheckpointSaver[str]):
    """Calls the synchronous methods, from the thread of the event loop."""

    def __init__(self, saver: Any) -> None:
        super().__init__()
        self.saver = saver

    def get_next_version(self, current: Any, channel: None) -> str:
        return str(self.saver.get_next_version(current, channel))

    async def aget_tuple(self, config: Any) -> Any:
        return self.saver.get_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        for found in self.saver.list(config, **options):
            yield found

    async def aput(self, *arguments: Any) -> Any:
        return self.saver.put(*arguments)

    async def aput_writes(self, *arguments: Any, **options: Any) -> None:
        self.saver.put_writes(*arguments, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        self.saver.delete_thread(thread_id)


async def node(state: State, config: RunnableConfig) -> State:
    saver = config["configurable"]["__pregel_checkpointer"]

    @checkpointer_test(name="HostCheckpointer", skip_capabilities={"delete_for_runs", "copy_thread", "prune"})
    async def create() -> AsyncGenerator[Any, None]:
        yield SyncCalls(saver) if state.get("is_sync") else saver

    report = await validate(create)
    return {
        "results": {
            name: [result.tests_passed, result.failures] for name, result in report.results.items() if result.detected
        }
    }


builder = StateGraph(State)
builder.add_node("node", node)
builder.add_edge(START, "node")
