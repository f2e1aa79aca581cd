from typing import Any

from chain import Steps, adds
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict


class Seen(TypedDict, total=False):
    seen: dict[str, Any]


async def _look(_: Seen, config: RunnableConfig, runtime: Runtime[Any]) -> Seen:
    """Returns what a node receives besides its state, without LangGraph's own keys."""
    own = {key: value for key, value in config["configurable"].items() if not key.startswith("__")}
    # An object with the interface of langgraph_sdk's BaseUser, which state cannot hold.
    own["langgraph_auth_user"] = dict(own["langgraph_auth_user"])
    return {
        "seen": {
            "configurable": own,
            "context": runtime.context,
            "metadata": config.get("metadata"),
            "tags": config.get("tags"),
            "recursionLimit": config.get("recursion_limit"),
        }
    }


_inspect = StateGraph(Seen)
_inspect.add_node("look", _look)
_inspect.add_edge(START, "look")
_inspect.add_edge("look", END)
inspect = _inspect.compile()


def factory(config: RunnableConfig) -> StateGraph[Any]:
    """A graph that is built from the configuration: its answer is the configured word."""
    word = config.get("configurable", {}).get("word", "nothing")
    builder = StateGraph(Steps)
    builder.add_node("say", adds(word))
    builder.add_edge(START, "say")
    builder.add_edge("say", END)
    return builder
