"""Imports, exports, factories and module names."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from service import Service

GRAPH = """
from langgraph.graph import StateGraph, START
from typing_extensions import TypedDict

class State(TypedDict):
    text: str

def node(state):
    return {"text": __name__}

def build():
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


async def failure(service: Service, project: Path, files: dict[str, str], path: str) -> str:
    loaded = await service.load(write(project, files), {"agent": path})
    reason: str = loaded["failures"]["agent"]
    outcome, _ = await service.run("agent")
    assert outcome["ended"] == "error" and outcome["error"]["message"] == reason
    return reason


@pytest.mark.parametrize(
    ("files", "path", "expected"),
    [
        ({}, "agnet.py:graph", "./agnet.py does not exist"),
        ({}, "pkg.agnet:graph", "There is no module pkg.agnet in the project or {environment}"),
        (
            {"agent.py": "import os\n\nraise KeyError('x')\n"},
            "agent.py:graph",
            "KeyError: 'x' (agent.py, line 3)",
        ),
        (
            {"agent.py": "import helper\n", "helper.py": "x = 1\nimport httpx9\n"},
            "agent.py:graph",
            "ModuleNotFoundError: No module named 'httpx9' (helper.py, line 2); httpx9 is not installed in {environment}",
        ),
        ({"agent.py": "x = (\n"}, "agent.py:graph", "SyntaxError: '(' was never closed (agent.py, line 1)"),
        ({"agent.py": "import sys\nsys.exit(3)\n"}, "agent.py:graph", "SystemExit: 3 (agent.py, line 2)"),
        (
            {"agent.py": "import os\nfrom json import dumps\ngraph = 1\nclass State: pass\n_x = 1\n"},
            "agent.py:grpah",
            'agent.py has no "grpah"; it has graph, State, dumps',
        ),
        (
            {"agent.py": "graph = {}\n"},
            "agent.py:graph",
            '"graph" in agent.py is a dict. Export a StateGraph, a compiled graph, or a function that returns one.',
        ),
        (
            {"agent.py": "class graph: pass\n"},
            "agent.py:graph",
            '"graph" in agent.py is a class. Export a StateGraph, a compiled graph, or a function that returns one.',
        ),
        (
            {"agent.py": "def graph(a, b, c): pass\n"},
            "agent.py:graph",
            '"graph" in agent.py has 3 parameters. A function that returns a graph has at most two: config and runtime.',
        ),
    ],
)
async def test_failures(bare_service: Service, tmp_path: Path, files: Any, path: str, expected: str) -> None:
    import sys

    reason = await failure(bare_service, tmp_path, files, path)
    assert reason == expected.replace("{environment}", sys.prefix)


async def test_traceback_is_logged(bare_service: Service, tmp_path: Path) -> None:
    await failure(bare_service, tmp_path, {"agent.py": "def f():\n    1 / 0\n\nf()\n"}, "agent.py:graph")
    log = next(log for log in bare_service.logs() if log["message"] == "graph failed to load")
    fields = json.loads(log["fields"])
    assert fields["graph_id"] == "agent"
    assert 'agent.py", line 4' in fields["traceback"]
    assert "importlib" not in fields["traceback"] and "threadmill_host" not in fields["traceback"]


async def test_a_failure_keeps_the_other_graphs(bare_service: Service, tmp_path: Path) -> None:
    project = write(tmp_path, {"good.py": GRAPH + "graph = build()\n", "bad.py": "1 / 0"})
    loaded = await bare_service.load(project, {"good": "good.py:graph", "bad": "bad.py:graph"})
    assert list(loaded["failures"]) == ["bad"]
    outcome, _ = await bare_service.run("good", input={"text": "x"})
    assert outcome["ended"] == "success"


async def test_module_names(bare_service: Service, tmp_path: Path) -> None:
    source = GRAPH + "graph = build()\n"
    project = write(
        tmp_path,
        {
            "src/my_agent/__init__.py": "",
            "src/my_agent/graph.py": source,
            "a/graph.py": "import helper\n" + source,
            "a/helper.py": "",
            "my-agent.py": source,
            "test/graph.py": source,
            "json.py": source,
            "pkg/__init__.py": "",
            "pkg/module.py": source,
        },
    )
    expected = {
        "src/my_agent/graph.py": "my_agent.graph",
        "a/graph.py": "a.graph",
        "my-agent.py": "threadmill_graphs.my_agent",
        "test/graph.py": "test.graph",
        "json.py": "threadmill_graphs.json",
        "pkg.module": "pkg.module",
    }
    loaded = await bare_service.load(project, {path: f"{path}:graph" for path in expected})
    assert loaded["failures"] == {}
    for path, name in expected.items():
        outcome, _ = await bare_service.run(path, input={"text": "x"})
        assert json.loads(outcome["output"]) == {"text": name}


FACTORIES = (
    GRAPH
    + """
import asyncio, contextlib
from dataclasses import dataclass
from pydantic import BaseModel
from langchain_core.runnables import RunnableConfig
from langgraph_sdk.runtime import ServerRuntime
from langgraph.config import get_config

@dataclass
class Context:
    name: str

class Model(BaseModel):
    name: str

def graph_of(text):
    builder = StateGraph(State)
    builder.add_node("node", lambda state: {"text": str(text)})
    builder.add_edge(START, "node")
    return builder

no_parameters = lambda: graph_of("none")

def by_config(config: RunnableConfig):
    return graph_of(config["configurable"]["key"]).compile()

def by_name(runtime, config):
    return graph_of(f"{config['configurable']['key']} {runtime.access_context}")

def by_position(a, b):
    return graph_of(f"{a['configurable']['key']} {b.access_context}")

async def asynchronous(runtime: ServerRuntime[Context]):
    await asyncio.sleep(0)
    execution = runtime.execution_runtime
    return graph_of(execution.context if execution else "read")

def with_model(runtime: "ServerRuntime[Model]"):
    return graph_of(runtime.execution_runtime.context.name)

def user(runtime: ServerRuntime):
    user = runtime.ensure_user()
    return graph_of(f"{user.identity} {user['team']} {user.permissions}")

@contextlib.asynccontextmanager
async def manager(config: RunnableConfig):
    print("enter")
    try:
        yield graph_of("managed")
    finally:
        await asyncio.sleep(0.01)
        print("leave")

@contextlib.contextmanager
def sync_manager():
    print("enter")
    try:
        yield failing()
    finally:
        print("leave")

async def generator():
    print("enter")
    try:
        yield sleeping()
    finally:
        print("leave")

def failing():
    builder = StateGraph(State)
    builder.add_node("node", lambda state: 1 / 0)
    builder.add_edge(START, "node")
    return builder

def sleeping():
    async def sleep(state):
        print("sleeping")
        await asyncio.sleep(30)
    builder = StateGraph(State)
    builder.add_node("node", sleep)
    builder.add_edge(START, "node")
    return builder

def no_graph():
    return [1]

def store(runtime: ServerRuntime):
    runtime.store.get(("a",), "b")

def broken():
    raise LookupError("no key")
"""
)


@pytest.fixture
async def factories(bare_service: Service, tmp_path: Path) -> Service:
    names = [
        *("no_parameters", "by_config", "by_name", "by_position", "asynchronous", "with_model", "user"),
        *("manager", "sync_manager", "generator", "no_graph", "store", "broken"),
    ]
    project = write(tmp_path, {"agent.py": FACTORIES})
    loaded = await bare_service.load(project, {name: f"agent.py:{name}" for name in names})
    assert loaded["failures"] == {}
    return bare_service


async def test_factories(factories: Service) -> None:
    config = {"configurable": {"key": "K", "langgraph_auth_user": {"identity": "ada", "team": 7, "permissions": ["p"]}}}
    expected = {
        "no_parameters": "none",
        "by_config": "K",
        "by_name": "K threads.create_run",
        "by_position": "K threads.create_run",
        "asynchronous": "Context(name='n')",
        "with_model": "n",
        "user": "ada 7 ['p']",
        "manager": "managed",
    }
    for name, text in expected.items():
        outcome, _ = await factories.run(name, input={"text": "x"}, config=config, context={"name": "n"})
        assert outcome["ended"] == "success", (name, outcome)
        assert json.loads(outcome["output"]) == {"text": text}
    drawing = json.loads(await factories.query("drawing", "asynchronous", xray=False))
    assert [node["id"] for node in drawing["nodes"]] == ["__start__", "node", "__end__"]


async def test_failing_factories(factories: Service) -> None:
    outcome, _ = await factories.run("no_graph", input={"text": "x"})
    assert outcome["error"]["message"] == (
        '"no_graph" in agent.py returned a list. Export a StateGraph, a compiled graph, or a function that returns one.'
    )
    outcome, _ = await factories.run("broken", input={"text": "x"})
    assert outcome["error"] == {"error": "LookupError", "message": "no key"}
    outcome, _ = await factories.run("user", input={"text": "x"})
    assert outcome["error"]["error"] == "PermissionError"
    with pytest.raises(RuntimeError, match="The store is available only during a run"):
        await factories.query("drawing", "store", xray=False)


async def test_context_managers_are_left(factories: Service) -> None:
    def printed() -> list[str]:
        return [log["message"] for log in factories.logs() if log["message"] in ("enter", "leave")]

    def position(order: dict[str, Any]) -> int:
        done = [n for n, one in enumerate(factories.received) if one.get("run_id") == order["run_id"]]
        return done[-1]

    for name, ended in (("manager", "success"), ("sync_manager", "error")):
        outcome, order = await factories.run(name, input={"text": "x"})
        assert outcome["ended"] == ended
        assert printed() == ["enter", "leave"]
        assert factories.received[position(order)]["type"] == "done"
        factories.received.clear()
    order = factories.start_run("generator", input={"text": "x"})
    await factories.wait_for(lambda message: message.get("message") == "sleeping")
    factories.send({"type": "abort", "run_id": order["run_id"], "epoch": 1, "reason": "cancelled"})
    assert (await factories.outcome(order))["ended"] == "aborted"
    assert printed() == ["enter", "leave"]


async def test_import_may_run_event_loops(bare_service: Service, tmp_path: Path) -> None:
    source = GRAPH + "import asyncio\n\nasync def make():\n    return build()\n\ngraph = asyncio.run(make())\n"
    project = write(tmp_path, {"agent.py": source})
    loaded = await bare_service.load(project, {"agent": "agent.py:graph"})
    assert loaded["failures"] == {}
    outcome, _ = await bare_service.run("agent", input={"text": "x"})
    assert outcome["ended"] == "success"
    assert os.getcwd() != str(project)
