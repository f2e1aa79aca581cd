"""Evaluates and traces with the official Python client, which finds the server in its environment.

The argument is the address of a fake of the chat completions of OpenAI.

Prints a line of JSON for each scenario: {"scenario": ..., "ok": true}, or with "ok": false and the "reason".
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from operator import add
from pathlib import Path
from typing import Annotated, TypedDict
from uuid import UUID

import langsmith
import requests
from checks import has, same, unique
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tracers.langchain import wait_for_all_tracers
from langgraph.graph import END, START, StateGraph
from langsmith import aevaluate, evaluate, evaluate_existing, traceable
from langsmith.evaluation import evaluate_comparative
from langsmith.run_helpers import get_current_run_tree, tracing_context
from langsmith.run_trees import get_cached_client
from langsmith.schemas import Attachment
from langsmith.wrappers import wrap_openai
from openai import OpenAI

QUESTIONS = ["1 + 1", "2 + 2", "3 + 3", "0 / 0"]
ANSWERS = [2, 4, 7, 0]
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

# `traceable` and `evaluate` send with this one, so that it can be flushed.
client = get_cached_client()


def dataset() -> str:
    name = f"py {unique()}"
    made = client.create_dataset(name)
    examples = [{"inputs": {"question": q}, "outputs": {"answer": a}} for q, a in zip(QUESTIONS, ANSWERS)]
    client.create_examples(dataset_id=made.id, examples=examples)
    return name


@traceable(run_type="llm", metadata={"ls_provider": "openai", "ls_model_name": "gpt-4o"})
def calculate(question: str) -> dict:
    left, operator, right = question.split(" ")
    number = int(left) + int(right) if operator == "+" else int(left) / int(right)
    return {"number": number, "usage_metadata": USAGE}


def target(inputs: dict) -> dict:
    return {"answer": calculate(inputs["question"])["number"]}


async def async_target(inputs: dict) -> dict:
    await asyncio.sleep(0)
    return target(inputs)


def correct(outputs: dict, reference_outputs: dict) -> bool:
    return (outputs or {}).get("answer") == reference_outputs["answer"]


def distance(run, example) -> dict:
    given, wanted = (run.outputs or {}).get("answer"), example.outputs["answer"]
    known = given is not None and wanted is not None
    return {"key": "distance", "score": abs(given - wanted) / 2 if known else None, "comment": f"{given} or {wanted}"}


def kinds(run, example) -> dict:
    return {"results": [{"key": "kind", "value": "error" if run.error else "number"}]}


def passed(outputs: list, reference_outputs: list) -> dict:
    score = sum(correct(*pair) for pair in zip(outputs, reference_outputs)) / len(outputs)
    return {"key": "passed", "score": score}


def by_example(name: str, *experiments: str) -> dict:
    """The runs of each question, as the table of an experiment shows them."""
    id = client.read_dataset(dataset_name=name).id
    body = {"session_ids": [str(client.read_project(project_name=each).id) for each in experiments]}
    answer = requests.post(f"{client.api_url}/datasets/{id}/runs", json=body, timeout=30)
    same(answer.status_code, 200)
    return {example["inputs"]["question"]: example["runs"] for example in answer.json()}


def check_experiment(name: str, experiment: str, times: int) -> None:
    client.flush()
    project = client.read_project(project_name=experiment, include_stats=True)
    same([project.run_count, project.error_rate, project.total_tokens], [4 * times, 0.25, 45 * times])
    same(project.prompt_tokens, 30 * times)
    same(project.last_run_start_time is not None and project.latency_p50.total_seconds() >= 0, True)
    stats = project.feedback_stats
    has(stats["correct"], {"n": 4 * times, "avg": 0.5})
    has(stats["distance"], {"n": 4 * times, "max": 0.5, "min": 0})
    same(len(stats["distance"]["comments"]) > 0, True)
    same(stats["kind"]["values"], {"number": 3 * times, "error": times})
    has(project.session_feedback_stats["passed"], {"n": 1, "avg": 0.5})
    runs = by_example(name, experiment)
    same([len(runs[question]) for question in QUESTIONS], [times] * 4)
    for question, answer in zip(QUESTIONS, [2, 4, 6, None]):
        for run in runs[question]:
            same([run["status"], run["total_tokens"]], ["error", 0] if answer is None else ["success", 15])
            same((run["outputs"] or {}).get("output" if answer is None else "answer"), answer)
            has(run["feedback_stats"]["correct"], {"n": 1, "avg": 1 if answer in (2, 4) else 0})
            same("ZeroDivisionError" in (run["error"] or ""), answer is None)


def evaluation() -> None:
    """evaluate() leaves an experiment with its rows, scores, tokens and errors"""
    name = dataset()
    found = evaluate(
        target,
        data=name,
        evaluators=[correct, distance, kinds],
        summary_evaluators=[passed],
        num_repetitions=2,
        max_concurrency=3,
        metadata={"model": "small"},
        description="from Python",
    )
    check_experiment(name, found.experiment_name, 2)
    project = client.read_project(project_name=found.experiment_name)
    has(project.metadata, {"model": "small", "num_repetitions": 2})
    same(project.description, "from Python")


def evaluation_of_a_split() -> None:
    """evaluate() runs the examples of a split with their attachments"""
    made = client.create_dataset(f"py {unique()}")
    examples = [
        {"inputs": {"n": n}, "split": split, "attachments": {"file": ("text/plain", str(n).encode())}}
        for n, split in enumerate(["hard", "easy", "hard"])
    ]
    client.create_examples(dataset_id=made.id, examples=examples)

    def read(inputs: dict, attachments: dict) -> dict:
        return {"text": attachments["file"]["reader"].read().decode()}

    data = list(client.list_examples(dataset_id=made.id, splits=["hard"], include_attachments=True))
    found = evaluate(read, data=data)
    client.flush()
    project = client.read_project(project_name=found.experiment_name, include_stats=True)
    same([project.run_count, project.error_rate, project.metadata["dataset_splits"]], [2, 0, ["hard"]])
    body = {"session_ids": [str(project.id)]}
    rows = requests.post(f"{client.api_url}/datasets/{made.id}/runs", json=body, timeout=30).json()
    same(sorted(run["outputs"]["text"] for row in rows for run in row["runs"]), ["0", "2"])


def async_evaluation() -> None:
    """aevaluate() leaves the same"""
    name = dataset()

    async def ask():
        return await aevaluate(
            async_target, data=name, evaluators=[correct, distance, kinds], summary_evaluators=[passed], max_concurrency=2
        )

    experiment = asyncio.run(ask()).experiment_name
    check_experiment(name, experiment, 1)


def compared_with_an_upload() -> None:
    """evaluate() on the dataset of an uploaded experiment compares with it"""
    name, at = f"py {unique()}", "2026-01-01T00:00:00Z"
    rows = [
        {
            "row_id": unique(),
            "inputs": {"question": question},
            "expected_outputs": {"answer": answer},
            "actual_outputs": {"answer": 0},
            "evaluation_scores": [{"key": "correct", "score": 0}],
            "start_time": at,
            "end_time": at,
        }
        for question, answer in zip(QUESTIONS, ANSWERS)
    ]
    body = {
        "experiment_name": f"{name} up",
        "dataset_name": name,
        "experiment_start_time": at,
        "experiment_end_time": at,
        "results": rows,
    }
    answer = requests.post(f"{client.api_url}/datasets/upload-experiment", json=body, timeout=30)
    uploaded = answer.json()["experiment"]
    experiment = evaluate(target, data=name, evaluators=[correct]).experiment_name
    client.flush()
    both = by_example(name, f"{name} up", experiment)
    same([[run["outputs"] for run in both[question]] for question in QUESTIONS[:2]], [[{"answer": 0}, {"answer": n}] for n in (2, 4)])
    project = client.read_project(project_name=experiment)
    body = {"baseline_session_id": uploaded["id"], "comparison_session_ids": [str(project.id)]}
    url = f"{client.api_url}/datasets/{project.reference_dataset_id}/compare"
    compared = requests.post(url, json=body, timeout=30).json()
    [comparison] = compared["comparisons"]
    has(comparison, {"key": "correct", "wins": 2, "losses": 0})


def existing() -> None:
    """evaluate_existing() adds scores to the runs of an experiment"""
    name = dataset()
    experiment = evaluate(target, data=name, evaluators=[correct]).experiment_name
    client.flush()
    answers = []

    def late(run, example) -> dict:
        answers.append((example.inputs["question"], (run.outputs or {}).get("answer"), len(run.child_runs or [])))
        return {"key": "late", "score": 1}

    evaluate_existing(experiment, evaluators=[late], summary_evaluators=[passed], load_nested=True)
    client.flush()
    same(sorted(answers), sorted([("1 + 1", 2, 1), ("2 + 2", 4, 1), ("3 + 3", 6, 1), ("0 / 0", None, 1)]))
    project = client.read_project(project_name=experiment, include_stats=True)
    has(project.feedback_stats["late"], {"n": 4, "avg": 1})
    same(project.session_feedback_stats["passed"]["n"], 1)
    same(project.run_count, 4)


def comparative() -> None:
    """evaluate_comparative() prefers the runs of one experiment"""
    name = dataset()
    one = evaluate(target, data=name).experiment_name
    two = evaluate(lambda inputs: {"answer": 0}, data=name).experiment_name
    client.flush()

    def better(runs: list, example) -> dict:
        scores = [float((run.outputs or {}).get("answer") == example.outputs["answer"]) for run in runs]
        return {"key": "better", "scores": {run.id: score for run, score in zip(runs, scores)}, "comment": "looked"}

    evaluate_comparative([one, two], evaluators=[better], randomize_order=True)
    client.flush()
    averages = [
        client.read_project(project_name=each, include_stats=True).feedback_stats["better"]["avg"] for each in (one, two)
    ]
    same(averages, [0.5, 0.25])
    runs = by_example(name, one)["1 + 1"]
    [feedback] = client.list_feedback(run_ids=[runs[0]["id"]])
    has(feedback.model_dump(), {"key": "better", "score": 1, "comment": "looked"})


def trees() -> None:
    """traceable functions are a tree with metadata, tags, errors and the time of the first token"""
    project = unique()

    @traceable(run_type="tool")
    def broken() -> None:
        raise ValueError("no such order")

    @traceable(run_type="llm")
    def stream():
        time.sleep(0.05)
        yield "a"
        yield "b"

    @traceable(tags=["blue"], metadata={"thread_id": "t-1", "nested": {"a": [1, None]}})
    def agent(question: str) -> dict:
        run = get_current_run_tree()
        run.metadata["late"] = "yes"
        run.tags.append("late")
        try:
            broken()
        except ValueError:
            pass
        return {"answer": "".join(stream()), "run_id": str(run.id)}

    with tracing_context(project_name=project):
        answer = agent("where?")
    client.flush()
    root = client.read_run(answer["run_id"], load_child_runs=True)
    same([root.name, root.run_type, root.inputs, root.outputs], ["agent", "chain", {"question": "where?"}, answer])
    has(root.metadata, {"thread_id": "t-1", "nested": {"a": [1, None]}, "late": "yes"})
    same(sorted(root.tags), ["blue", "late"])
    [first, second] = root.child_runs
    same([first.name, first.run_type, first.status, first.parent_run_id], ["broken", "tool", "error", root.id])
    same('ValueError("no such order")' in first.error or "ValueError('no such order')" in first.error, True)
    same([second.name, second.outputs, second.status], ["stream", {"output": ["a", "b"]}, "success"])
    same(root.start_time <= second.start_time < second.first_token_time <= second.end_time <= root.end_time, True)
    same(root.first_token_time, second.first_token_time)

    def names(**query) -> list[str]:
        return sorted(run.name for run in client.list_runs(project_name=project, **query))

    same(names(), ["agent", "broken", "stream"])
    same(names(is_root=True), ["agent"])
    same(names(trace_id=root.trace_id, is_root=False), ["broken", "stream"])
    same(names(parent_run_id=root.id, run_type="tool"), ["broken"])
    same(names(error=True), ["broken"])
    same(names(filter='and(eq(run_type, "tool"), search("no such order"))'), ["broken"])
    # Children inherit the tags and metadata that a run begins with.
    same(names(filter='has(tags, "late")'), ["agent"])
    same(names(filter='has(tags, "blue")'), ["agent", "broken", "stream"])
    same(names(filter='and(eq(metadata_key, "late"), eq(metadata_value, "yes"))'), ["agent", "broken", "stream"])
    same(names(filter='and(eq(metadata_key, "late"), eq(metadata_value, "no"))'), [])
    same(names(trace_filter='eq(name, "agent")', filter='eq(run_type, "llm")'), ["stream"])
    same(names(tree_filter='eq(name, "broken")', is_root=True), ["agent"])
    same(names(run_ids=[second.id]), ["stream"])
    [selected] = client.list_runs(run_ids=[second.id], select=["outputs"])
    same([selected.id, selected.outputs, selected.inputs], [second.id, {"output": ["a", "b"]}, {}])
    stats = client.get_run_stats(project_names=[project], is_root=True)
    has(stats, {"run_count": 1, "error_rate": 0, "streaming_rate": 1})
    same(client.get_run_stats(trace=str(root.trace_id), project_names=[project])["run_count"], 3)


def odd_values() -> None:
    """values that JSON lacks are kept as what comes closest"""
    run_id, deep = langsmith.uuid7(), {}
    for _ in range(150):
        deep = {"in": deep}

    @traceable(run_type="tool")
    def step(deep: dict) -> dict:
        return {"nan": float("nan"), "large": 2**70, "nul": "a\x00b", "text": "NaN"}

    step(deep, langsmith_extra={"run_id": run_id})
    client.flush()
    run = client.read_run(run_id)
    same(run.outputs, {"nan": None, "large": 2**70, "nul": "a\ufffdb", "text": "NaN"})
    same([run.status, "__unparsed" in run.inputs], ["success", True])


def attachments() -> None:
    """attachments come back byte by byte"""
    data, run_id = bytes(range(256)) * 300, langsmith.uuid7()

    @traceable
    def look(image: Attachment, note: Attachment) -> int:
        return len(image.data)

    image, note = Attachment(mime_type="image/png", data=data), Attachment(mime_type="text/html", data=b"<b>\r\n--x--\r\n")
    look(image, note, langsmith_extra={"run_id": run_id})
    client.flush()
    run = client.read_run(run_id)
    same(sorted(run.attachments), ["image", "note"])
    same(run.attachments["image"]["reader"].read(), data)
    same(run.attachments["note"]["reader"].read(), note.data)
    same(requests.get(run.attachments["image"]["presigned_url"], timeout=10).headers["content-type"], "image/png")
    same("image" in (run.inputs or {}), False)
    [listed] = client.list_runs(run_ids=[run_id])
    same(sorted(listed.attachments), ["image", "note"])
    same(listed.attachments["image"]["reader"].read(), data)


def openai() -> None:
    """wrap_openai() keeps messages, tokens and the time of the first token"""
    project = unique()
    model = wrap_openai(OpenAI(base_url=sys.argv[1], api_key="any"))
    question = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello?"}], "temperature": 0}
    with tracing_context(project_name=project):

        @traceable
        def chat() -> str:
            plain = model.chat.completions.create(**question).choices[0].message.content
            chunks = model.chat.completions.create(**question, stream=True, stream_options={"include_usage": True})
            return plain + "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

        same(chat(), "Hello you.Hello you.")
    client.flush()
    root, *models = sorted(client.list_runs(project_name=project), key=lambda run: run.dotted_order)
    same([root.total_tokens, root.prompt_tokens, root.completion_tokens], [24, 18, 6])
    same(round(float(root.total_cost), 9), round(2 * (9 * 2.5e-6 + 3 * 1e-5), 9))
    for run in models:
        has(run.metadata, {"ls_provider": "openai", "ls_model_name": "gpt-4o", "ls_temperature": 0})
        same([run.run_type, run.inputs["messages"]], ["llm", question["messages"]])
        same([run.outputs["choices"][0]["message"]["content"], run.total_tokens], ["Hello you.", 12])
    same([run.first_token_time is not None for run in models], [False, True])


class State(TypedDict):
    steps: Annotated[list, add]


def langgraph() -> None:
    """a LangGraph graph is traced with its nodes"""
    project, run_id = unique(), langsmith.uuid7()
    graph = StateGraph(State)
    graph.add_node("plan", lambda state: {"steps": [traceable(name="think")(lambda: "planned")()]})
    graph.add_node("act", lambda state: {"steps": ["acted"]})
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "act")
    graph.add_edge("act", END)
    config = {"run_name": "crew", "run_id": run_id, "tags": ["nightly"], "metadata": {"team": "a"}}
    with tracing_context(project_name=project):
        graph.compile().invoke({"steps": ["begun"]}, config)
    wait_for_all_tracers()
    client.flush()
    root = client.read_run(run_id, load_child_runs=True)
    same([root.name, root.tags, root.metadata["team"]], ["crew", ["nightly"], "a"])
    same([root.inputs, root.outputs], [{"steps": ["begun"]}, {"steps": ["begun", "planned", "acted"]}])
    same([child.name for child in root.child_runs], ["plan", "act"])
    same([child.name for child in root.child_runs[0].child_runs], ["think"])
    has(root.child_runs[1].metadata, {"langgraph_node": "act", "langgraph_step": 2})


TOKENS = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}


class Model(BaseChatModel):
    """A model of LangChain, as the packages of the providers implement it."""

    @property
    def _llm_type(self) -> str:
        return "small"

    def _get_ls_params(self, stop=None, **kwargs) -> dict:
        return {"ls_provider": "openai", "ls_model_name": "gpt-4o", "ls_model_type": "chat"}

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Hello you.", usage_metadata=TOKENS))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for text in ("Hello", " you."):
            chunk = ChatGenerationChunk(message=AIMessageChunk(text))
            if run_manager:
                run_manager.on_llm_new_token(text, chunk=chunk)
            yield chunk
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=TOKENS))


class Talk(TypedDict):
    text: str


def langchain() -> None:
    """LangChain models in a graph report tokens, costs and the time of the first token"""
    project, run_id, model = unique(), langsmith.uuid7(), Model()
    graph = StateGraph(Talk)
    graph.add_node("ask", lambda state: {"text": model.invoke("Hello?").content})
    graph.add_node("talk", lambda state: {"text": state["text"] + "".join(c.content for c in model.stream("Hello?"))})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "talk")
    graph.add_edge("talk", END)
    with tracing_context(project_name=project):
        same(graph.compile().invoke({"text": ""}, {"run_id": run_id}), {"text": "Hello you.Hello you."})
    wait_for_all_tracers()
    client.flush()
    root = client.read_run(run_id)
    same([root.total_tokens, root.prompt_tokens, root.completion_tokens], [24, 18, 6])
    same(round(float(root.total_cost), 9), round(2 * (9 * 2.5e-6 + 3 * 1e-5), 9))
    runs = sorted(client.list_runs(project_name=project), key=lambda run: run.dotted_order)
    names = {run.id: run.name for run in runs}
    models = [run for run in runs if run.run_type == "llm"]
    found = [[names[run.parent_run_id], run.total_tokens, run.first_token_time is not None] for run in models]
    same(found, [["ask", 12, False], ["talk", 12, True]])
    same(root.first_token_time, models[1].first_token_time)
    same("Hello?" in json.dumps(models[0].inputs["messages"]), True)
    same("Hello you." in json.dumps(models[1].outputs["generations"]), True)


def feedback() -> None:
    """feedback is found with its run, whether it came before or after"""
    project, run_id = unique(), langsmith.uuid7()
    early = client.create_feedback(run_id, "early", score=True, trace_id=run_id, comment="before")

    @traceable
    def step() -> str:
        return "done"

    with tracing_context(project_name=project):
        step(langsmith_extra={"run_id": run_id})
    client.flush()
    late = client.create_feedback(run_id, "late", score=0.5, value="fine")
    client.create_feedback(run_id, "queued", score=1, trace_id=run_id)
    client.flush()
    ids = {each.key: each.id for each in client.list_feedback(run_ids=[run_id])}
    same(sorted(ids), ["early", "late", "queued"])
    same([ids["early"], ids["late"]], [early.id, late.id])
    stats = client.read_run(run_id).feedback_stats
    same({key: stats[key]["avg"] for key in stats}, {"early": 1, "late": 0.5, "queued": 1})
    found = client.list_runs(project_name=project, filter='and(eq(feedback_key, "late"), gt(feedback_score, 0.4))')
    same([run.id for run in found], [UUID(str(run_id))])


PYTEST = '''
import pytest
from langsmith import testing as t

SUITE = {suite!r}

@pytest.mark.langsmith(test_suite_name=SUITE)
def test_sum():
    t.log_inputs({{"a": 1, "b": 2}})
    t.log_reference_outputs({{"sum": 3}})
    t.log_outputs({{"sum": 1 + 2}})
    t.log_feedback(key="exact", score=1)

@pytest.mark.langsmith(test_suite_name=SUITE)
@pytest.mark.parametrize("n", [1, 2])
def test_failing(n):
    t.log_inputs({{"n": n}})
    t.log_outputs({{"n": n}})
    with t.trace_feedback():
        t.log_feedback(key="judged", score=0.5)
    assert n == 1
'''


def pytest_plugin() -> None:
    """the pytest plugin leaves an experiment with a row for each test"""
    suite = f"suite {unique()}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_suite.py").write_text(PYTEST.format(suite=suite))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90)
    same("2 passed" in ran.stdout and "1 failed" in ran.stdout, True)
    for complaint in ("langsmith.utils", "Failed to"):
        if complaint in ran.stdout + ran.stderr:
            raise AssertionError(ran.stdout + ran.stderr)
    [project] = client.list_projects(reference_dataset_name=suite, include_stats=True)
    same([project.run_count, round(project.error_rate, 3)], [3, 0.333])
    stats = project.feedback_stats
    has(stats["pass"], {"n": 3})
    same(round(stats["pass"]["avg"], 3), 0.667)
    same([stats["exact"]["avg"], stats["judged"]["avg"]], [1, 0.5])
    id = client.read_dataset(dataset_name=suite).id
    body = {"session_ids": [str(project.id)]}
    rows = requests.post(f"{client.api_url}/datasets/{id}/runs", json=body, timeout=30).json()
    same([len(row["runs"]) for row in rows], [1, 1, 1])
    [row] = [each for each in rows if "a" in each["inputs"]]
    same([row["inputs"], row["outputs"], row["runs"][0]["outputs"]], [{"a": 1, "b": 2}, {"sum": 3}, {"sum": 3}])


SCENARIOS = [
    evaluation,
    evaluation_of_a_split,
    async_evaluation,
    compared_with_an_upload,
    existing,
    comparative,
    trees,
    odd_values,
    attachments,
    openai,
    langgraph,
    langchain,
    feedback,
    pytest_plugin,
]


def report(scenario: str, error: BaseException | None) -> None:
    line: dict = {"scenario": scenario, "ok": error is None}
    if error is not None:
        line["reason"] = "".join(traceback.format_exception(error))[-3000:]
    print(json.dumps(line), file=RESULTS, flush=True)


if __name__ == "__main__":
    # The evaluators print links to the experiments, and log the errors of the target.
    RESULTS, sys.stdout = sys.stdout, open(os.devnull, "w")
    logging.getLogger("langsmith.evaluation").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for scenario in SCENARIOS:
        if len(sys.argv) > 2 and scenario.__name__ not in sys.argv[2:]:
            continue
        try:
            scenario()
            report(scenario.__doc__, None)
        except Exception as error:
            report(scenario.__doc__, error)
