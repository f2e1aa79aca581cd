"""Graphs for the tests of the host."""

import asyncio
import ctypes
import logging
import operator
import os
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_store, get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from langsmith import traceable
from typing_extensions import TypedDict

logger = logging.getLogger("project")


class State(TypedDict, total=False):
    text: str
    log: Annotated[list[Any], operator.add]


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def single(function: Any, state: Any = State) -> Any:
    builder = StateGraph(state)
    builder.add_node("node", function)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile()


async def _echo(state: State) -> State:
    return {"text": f"echo {state.get('text')}", "log": ["node"]}


echo = single(_echo)


def _five() -> Any:
    builder = StateGraph(State)

    def node(name: str) -> Any:
        async def step(state: State) -> State:
            await asyncio.sleep(0.02)
            return {"log": [name]}

        return step

    names = ["a", "b", "c", "d", "e"]
    for name in names:
        builder.add_node(name, node(name))
    builder.add_edge(START, "a")
    for first, second in zip(names, [*names[1:], END], strict=True):
        builder.add_edge(first, second)
    return builder.compile()


five = _five()


async def _custom(state: State) -> State:
    writer = get_stream_writer()
    for number in range(3):
        writer({"number": number})
    return {"text": "custom"}


custom = single(_custom)


async def _many(state: State) -> State:
    writer = get_stream_writer()
    for _ in range(100):
        writer("x" * 100_000)
        await asyncio.sleep(0)
    return {"text": "many"}


many = single(_many)


async def _chat(state: Chat) -> Any:
    model = GenericFakeChatModel(messages=iter([AIMessage(content="hello world again", id="ai-1")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


chat = single(_chat, Chat)


def _outer() -> Any:
    inner = StateGraph(State)
    inner.add_node("inner_node", lambda state: {"log": ["inner"]})
    inner.add_edge(START, "inner_node")
    builder = StateGraph(State)
    builder.add_node("before", lambda state: {"log": ["before"]})
    builder.add_node("sub", inner.compile())
    builder.add_edge(START, "before")
    builder.add_edge("before", "sub")
    return builder.compile()


outer = _outer()


async def _ask(state: State) -> State:
    first = interrupt({"question": 1})
    second = interrupt({"question": 2})
    return {"log": [first, second]}


ask = single(_ask)


async def _ask_once(state: State) -> State:
    return {"log": [interrupt("one?")]}


ask_once = single(_ask_once)


def _ask_two() -> Any:
    builder = StateGraph(State)
    builder.add_node("left", lambda state: {"log": [interrupt("left?")]})
    builder.add_node("right", lambda state: {"log": [interrupt("right?")]})
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    return builder.compile()


ask_two = _ask_two()


def _ask_inside() -> Any:
    inner = StateGraph(State)
    inner.add_node("inner_node", _ask_once)
    inner.add_edge(START, "inner_node")
    builder = StateGraph(State)
    builder.add_node("sub", inner.compile())
    builder.add_edge(START, "sub")
    return builder.compile()


ask_inside = _ask_inside()


def _router() -> Any:
    builder = StateGraph(State)
    builder.add_node("decide", lambda state: Command(goto="target", update={"log": ["decide"]}))
    builder.add_node("target", lambda state: {"log": [state.get("text")]})
    builder.add_edge(START, "decide")
    return builder.compile()


router = _router()


async def _sleep(state: State) -> State:
    get_stream_writer()("sleeping")
    try:
        await asyncio.sleep(30)
    finally:
        print("cleaned up")
    return {"text": "late"}


sleep = single(_sleep)


def _sync_sleep(state: State) -> State:
    get_stream_writer()("sleeping")
    time.sleep(1.2)
    return {"text": "late"}


sync_sleep = single(_sync_sleep)


async def _swallow(state: State) -> State:
    get_stream_writer()("sleeping")
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.sleep(0.5)
    return {"text": "swallowed"}


swallow = single(_swallow)


async def _block(state: State) -> State:
    get_stream_writer()("blocking")
    await asyncio.sleep(0.05)
    time.sleep(float(state.get("text") or 2))
    return {"text": "done"}


block = single(_block)


async def _fail(state: State) -> State:
    match state.get("text"):
        case "exit":
            os._exit(7)
        case "segfault":
            ctypes.string_at(0)
        case "system_exit":
            sys.exit(3)
        case "keyboard":
            raise KeyboardInterrupt
        case "memory":
            return {"log": [len(bytearray(3_000_000_000))]}
        case "recursion":
            return {"log": ["again"]}
    raise ValueError("it broke \ud800")


fail = single(_fail)


def _loop() -> Any:
    builder = StateGraph(State)
    builder.add_node("node", lambda state: {"log": ["again"]})
    builder.add_edge(START, "node")
    builder.add_edge("node", "node")
    return builder.compile()


endless = _loop()


def _sync_exit(state: State) -> State:
    sys.exit(4)


sync_exit = single(_sync_exit)


async def _talk(state: State) -> State:
    print("from print")
    print("from stderr", file=sys.stderr)
    logger.warning("from logger %d", 1)

    def in_thread() -> None:
        print("from thread")

    await asyncio.to_thread(in_thread)
    print("no newline", end="")
    return {"text": "said"}


talk = single(_talk)


class Calls(BaseCallbackHandler):
    """Counts the chains of the graph to which it is bound."""

    started = 0

    def on_chain_start(self, *_: Any, **__: Any) -> None:
        Calls.started += 1


counted = single(lambda state: {"log": [Calls.started]}).with_config(callbacks=[Calls()])


@task
async def shout(text: str) -> str:
    return text.upper()


@entrypoint()
async def functional(state: State) -> str:
    return await shout(state["text"])


async def _in_background(state: State) -> State:
    asyncio.create_task(asyncio.to_thread(time.sleep, 30))
    await asyncio.sleep(0)
    return {"log": ["done"]}


in_background = single(_in_background)


def _own_thread() -> Any:
    child = single(_echo, State).builder.compile(checkpointer=True)

    async def research(state: State, config: RunnableConfig) -> State:
        own = {**config["configurable"], "thread_id": str(uuid.uuid4()), "checkpoint_ns": ""}
        found = await child.ainvoke({"text": "x"}, {**config, "configurable": own})
        get_stream_writer()({"found": found["text"]})
        return {"log": [found["text"]]}

    async def approve(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    builder = StateGraph(State)
    builder.add_node("research", research)
    builder.add_node("approve", approve)
    builder.add_edge(START, "research")
    builder.add_edge("research", "approve")
    return builder.compile()


own_thread = _own_thread()


async def _remember_in_threads(state: State) -> State:
    store = get_store()
    await asyncio.get_running_loop().run_in_executor(None, store.put, ("users", "2"), "name", {"name": "Eve"})
    await store.aput(("users", "2"), "code", {"code": 1}, ttl=5)
    await store.aget(("users", "2"), "code", refresh_ttl=False)
    with ThreadPoolExecutor() as pool:
        return {"log": [len(found) for found in pool.map(store.search, [("users", "2")])]}


remember_in_threads = single(_remember_in_threads)


async def _remember(state: State) -> State:
    store = get_store()
    await store.aput(("users", "1"), "name", {"name": "Ada\x00"})
    store.put(("users", "1"), "age", {"age": 36}, index=False)
    found = await store.aget(("users", "1"), "name")
    items = store.search(("users",))
    names = await store.alist_namespaces(prefix=("users",))
    await store.adelete(("users", "1"), "age")
    return {"log": [found.value if found else None, len(items), names, found.created_at.year if found else 0]}


remember = single(_remember)


sync_echo = single(lambda state: {"log": ["node"]})


def _nested_invoke(state: State) -> State:
    return {"log": sync_echo.invoke({"text": "inner"})["log"]}


sync_subgraph = single(_nested_invoke)


async def _nested_invoke_in_loop(state: State) -> State:
    return {"log": sync_echo.invoke({"text": "inner"})["log"]}


sync_subgraph_in_loop = single(_nested_invoke_in_loop)


async def _show_config(state: State, config: RunnableConfig) -> State:
    configurable = {key: value for key, value in config["configurable"].items() if not key.startswith("__")}
    configurable["langgraph_auth_user"] = dict(configurable["langgraph_auth_user"])
    return {"log": [configurable, config["metadata"], config.get("tags"), config["recursion_limit"]]}


show_config = single(_show_config)


async def _token(state: State, config: RunnableConfig) -> State:
    from threadmill import get_token

    token = await get_token(config, provider="github", scopes=["repo"])
    return {"log": [token, interrupt("and?")]}


token = single(_token)


def _deltas() -> Any:
    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph.message import _messages_delta_reducer

    class Messages(TypedDict):
        messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer)]

    def reply(state: Messages) -> Any:
        return {"messages": [AIMessage(f"reply {len(state['messages'])}")]}

    builder = StateGraph(Messages)
    builder.add_node("one", reply)
    builder.add_node("two", reply)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return builder.compile()


deltas = _deltas()


def _delta_input() -> Any:
    from langgraph.channels.delta import DeltaChannel
    from langgraph.channels.last_value import LastValue
    from langgraph.pregel import NodeBuilder, Pregel

    def concat(state: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*state, *(item for write in writes for item in write)]

    node = NodeBuilder().subscribe_only("items").do(lambda items: len(items)).write_to("count")
    return Pregel(
        nodes={"node": node},
        channels={"items": DeltaChannel(concat, list), "count": LastValue(int)},
        input_channels=["items"],
        output_channels=["items", "count"],
    )


delta_input = _delta_input()


def _fork(state: State) -> State:
    pid = os.fork()
    if pid == 0:
        print("in the child")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return {"text": f"child {status}"}


fork = single(_fork)


async def embed(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 0.0, 0.0] for text in texts]


@traceable(run_type="tool", name="search")
async def _search(query: str) -> list[str]:
    return [f"a page about {query}"]


async def _answer(state: Chat) -> Any:
    await _search("tides")
    usage = UsageMetadata(input_tokens=7, output_tokens=2, total_tokens=9)
    answer = AIMessage(content="yes", id="ai-1", usage_metadata=usage)
    return {"messages": [await GenericFakeChatModel(messages=iter([answer])).ainvoke(state["messages"])]}


def _traced() -> Any:
    builder = StateGraph(Chat)
    builder.add_node("sub", single(_answer, Chat))
    builder.add_edge(START, "sub")
    return builder.compile()


traced = _traced()
