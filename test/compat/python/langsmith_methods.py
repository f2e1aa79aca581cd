"""Calls every public method of the official Python clients of experiments with real arguments.

The argument is the URL of a service; see method_calls.py for the output. The resource `sandboxes` is one name.
"""

import asyncio
import inspect
import sys
import tempfile
import warnings
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas
from checks import same, unique
from langchain_core.prompts import ChatPromptTemplate
from langsmith import AsyncClient, Client
from langsmith.evaluation import EvaluationResult, run_evaluator
from langsmith.schemas import DataType, ExampleCreate, ExampleUpdate, ExampleUpsertWithAttachments, FileEntry, InsightsReport
from method_calls import Call, World, call_all, keep, settle

START = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
PERIOD = {"min_start_time": "2026-01-30T00:00:00Z", "max_start_time": "2026-02-02T00:00:00Z"}
FILES = {"README.md": FileEntry(content="text")}


def resource(value: Any) -> bool:
    return type(value).__name__.endswith("Resource")


def names_in(value: Any, path: str = "") -> list[str]:
    """The names of the public methods and properties."""
    names = []
    for name in dir(type(value)):
        static = inspect.getattr_static(type(value), name)
        if name.startswith(("_", "with_")) or inspect.ismemberdescriptor(static):
            continue
        if name == "sandboxes":
            names.append("sandboxes.*")
            continue
        is_property = not inspect.isfunction(static)
        member = getattr(value, name) if is_property and not name == "info" else None
        names += names_in(member, f"{path}{name}.") if resource(member) else [path + name]
    return names


def has_categories(values: list[float], call: Call) -> Call:
    async def checked(client: Any, world: World) -> None:
        config = await settle(call(client, world))
        same([category["value"] for category in config.feedback_config["categories"]], values)

    return checked


def run_fields(world: World, **more: Any) -> dict:
    id = unique()
    return {
        "id": id,
        "trace_id": id,
        "dotted_order": f"{START:%Y%m%dT%H%M%S%f}Z{id}",
        "name": "run",
        "run_type": "chain",
        "inputs": {"messages": []},
        "outputs": {"answer": "!"},
        "start_time": START,
        "end_time": START + timedelta(seconds=1),
        "session_name": world["project_name"],
        "extra": {"metadata": {"thread_id": world["thread"]}},
        **more,
    }


def set_up(client: Client) -> World:
    text = unique()
    world: World = {"text": text, "project_name": f"project {text}", "thread": unique(), "prompt": f"prompt-{text}"}
    world["run_fields"] = run_fields(world)
    client.multipart_ingest(create=[world["run_fields"]])
    world["run_id"] = str(world["run_fields"]["id"])
    world["run"] = client.read_run(world["run_id"])
    world["project"] = client.read_project(project_name=world["project_name"])
    world["project_id"] = str(world["project"].id)
    world["dataset"] = client.create_dataset(f"dataset {text}")
    world["dataset_id"] = str(world["dataset"].id)
    examples = [{"inputs": {"q": q}, "outputs": {"a": q}} for q in "abcdef"]
    world["examples"] = client.create_examples(dataset_id=world["dataset_id"], examples=examples)["example_ids"]
    world["filled_at"] = datetime.now(timezone.utc)
    experiments = [client.create_project(unique(), reference_dataset_id=world["dataset_id"]) for _ in range(2)]
    world["experiments"] = [str(experiment.id) for experiment in experiments]
    row = run_fields(world, session_name=experiments[0].name, reference_example_id=world["examples"][4])
    client.multipart_ingest(create=[row])
    world["template"] = ChatPromptTemplate.from_messages([("human", "{input}")])
    return world


def csv_file() -> str:
    path = Path(tempfile.mkdtemp()) / "examples.csv"
    path.write_text("q,a\n1,2\n")
    return str(path)


@run_evaluator
def evaluator(run: Any, example: Any = None) -> EvaluationResult:
    return EvaluationResult(key="evaluated", score=1)


async def async_target(inputs: dict) -> dict:
    return inputs


def report(world: World) -> InsightsReport:
    return InsightsReport(
        id=unique(),
        name="report",
        status="queued",
        project_id=world["project_id"],
        tenant_id=world["project"].tenant_id,
        host_url="http://localhost",
    )


def fine_tuning(client: Client, world: World) -> Any:
    chat = client.create_dataset(unique(), data_type=DataType.chat)
    messages = [{"type": kind, "data": {"content": kind}} for kind in ("human", "ai")]
    client.create_chat_example(messages[:1], messages[1], dataset_id=chat.id)
    return client.read_dataset_openai_finetuning(chat.id)


def test_results(client: Client, name: str) -> Any:
    client.flush()
    return client.get_test_results(project_name=name)


def run_key(w: World) -> dict:
    return {"run_id": w["run_id"], "session_id": w["project_id"], "start_time": START.isoformat()}


# Methods that both clients have. The order matters: records are created before they are read and deleted.
SHARED: dict[str, Call] = {
    "headers": lambda c, w: c.headers,
    "api_key": lambda c, w: c.api_key,
    "workspace_id": lambda c, w: c.workspace_id,
    "create_run": lambda c, w: c.create_run("run", {"q": 1}, "chain", project_name=w["project_name"]),
    "update_run": lambda c, w: c.update_run(w["run_id"], end_time=START + timedelta(seconds=2)),
    "read_run": lambda c, w: c.read_run(w["run_id"]),
    "list_runs": lambda c, w: c.list_runs(project_id=w["project_id"]),
    "share_run": lambda c, w: c.share_run(w["run_id"]),
    "run_is_shared": lambda c, w: c.run_is_shared(w["run_id"]),
    "read_run_shared_link": lambda c, w: c.read_run_shared_link(w["run_id"]),
    "create_project": keep("other_project", lambda c, w: c.create_project(unique())),
    "read_project": lambda c, w: c.read_project(project_id=w["project_id"]),
    "delete_project": lambda c, w: c.delete_project(project_id=w["other_project"].id),
    "create_dataset": keep("other_dataset", lambda c, w: c.create_dataset(unique())),
    "read_dataset": lambda c, w: c.read_dataset(dataset_id=w["dataset_id"]),
    "list_datasets": lambda c, w: c.list_datasets(dataset_name=w["dataset"].name),
    "create_example": keep(
        "example", lambda c, w: c.create_example(inputs={"q": 1}, outputs={"a": 2}, dataset_id=w["dataset_id"])
    ),
    "read_example": lambda c, w: c.read_example(w["example"].id),
    "list_examples": lambda c, w: c.list_examples(dataset_id=w["dataset_id"]),
    "create_feedback": keep("feedback", lambda c, w: c.create_feedback(w["run_id"], "key", score=1)),
    "read_feedback": lambda c, w: c.read_feedback(w["feedback"].id),
    "list_feedback": lambda c, w: c.list_feedback(run_ids=[w["run_id"]]),
    "create_presigned_feedback_token": keep(
        "feedback_token", lambda c, w: c.create_presigned_feedback_token(w["run_id"], "presigned")
    ),
    "create_feedback_from_token": lambda c, w: c.create_feedback_from_token(
        w["feedback_token"].id if "feedback_token" in w else unique(), score=1
    ),
    "create_feedback_config": lambda c, w: c.create_feedback_config(
        w["text"],
        feedback_config={
            "type": "categorical",
            "categories": [{"value": 0, "label": "no"}, {"value": 1, "label": "yes"}],
        },
    ),
    "list_feedback_configs": lambda c, w: c.list_feedback_configs(feedback_key=[w["text"]]),
    "update_feedback_config": lambda c, w: c.update_feedback_config(w["text"], is_lower_score_better=True),
    "add_feedback_categories": has_categories(
        [0, 1, 2], lambda c, w: c.add_feedback_categories(w["text"], [{"value": 2, "label": "maybe"}])
    ),
    "remove_feedback_categories": has_categories(
        [0, 2], lambda c, w: c.remove_feedback_categories(w["text"], [1])
    ),
    "delete_feedback_config": lambda c, w: c.delete_feedback_config(w["text"]),
    "create_annotation_queue": keep(
        "queue",
        lambda c, w: c.create_annotation_queue(
            name=w["text"], rubric_instructions="Read.", rubric_items=[{"feedback_key": "tone"}]
        ),
    ),
    "read_annotation_queue": lambda c, w: c.read_annotation_queue(w["queue"].id),
    "update_annotation_queue": lambda c, w: c.update_annotation_queue(w["queue"].id, description="changed"),
    "list_annotation_queues": lambda c, w: c.list_annotation_queues(name=w["text"]),
    "add_runs_to_annotation_queue": lambda c, w: c.add_runs_to_annotation_queue(w["queue"].id, runs=[run_key(w)]),
    "get_run_from_annotation_queue": lambda c, w: c.get_run_from_annotation_queue(w["queue"].id, index=0),
    "list_runs_from_annotation_queue": lambda c, w: c.list_runs_from_annotation_queue(w["queue"].id),
    "delete_run_from_annotation_queue": lambda c, w: c.delete_run_from_annotation_queue(
        w["queue"].id, run_id=w["run_id"]
    ),
    "annotation_queues.retrieve": lambda c, w: c.annotation_queues.retrieve(w["queue"].id),
    "annotation_queues.update": lambda c, w: c.annotation_queues.update(w["queue"].id, name="renamed"),
    "annotation_queues.annotation_queues": keep(
        "other_queue", lambda c, w: c.annotation_queues.annotation_queues(name="other", session_ids=[w["project_id"]])
    ),
    "annotation_queues.populate": lambda c, w: c.annotation_queues.populate(
        queue_id=w["other_queue"].id, session_ids=[w["project_id"]]
    ),
    "annotation_queues.retrieve_annotation_queues": lambda c, w: c.annotation_queues.retrieve_annotation_queues(),
    "annotation_queues.retrieve_queues": lambda c, w: c.annotation_queues.retrieve_queues(w["run_id"]),
    "annotation_queues.runs.create": keep(
        "queued", lambda c, w: c.annotation_queues.runs.create(w["queue"].id, body=[w["run_id"]])
    ),
    "annotation_queues.retrieve_run": lambda c, w: c.annotation_queues.retrieve_run(0, queue_id=w["queue"].id),
    "annotation_queues.retrieve_size": lambda c, w: c.annotation_queues.retrieve_size(w["queue"].id),
    "annotation_queues.retrieve_total_size": lambda c, w: c.annotation_queues.retrieve_total_size(w["queue"].id),
    "annotation_queues.retrieve_total_archived": lambda c, w: c.annotation_queues.retrieve_total_archived(
        w["queue"].id
    ),
    "annotation_queues.create_run_status": lambda c, w: c.annotation_queues.create_run_status(
        w["queued"][0].id, status="completed"
    ),
    "annotation_queues.export": lambda c, w: c.annotation_queues.export(w["queue"].id),
    "annotation_queues.runs.list": lambda c, w: c.annotation_queues.runs.list(w["queue"].id, archived=True),
    "annotation_queues.runs.update": lambda c, w: c.annotation_queues.runs.update(
        w["queued"][0].id, queue_id=w["queue"].id, last_reviewed_time=START
    ),
    "annotation_queues.runs.delete_queue": lambda c, w: c.annotation_queues.runs.delete_queue(
        w["queued"][0].id, queue_id=w["queue"].id
    ),
    "annotation_queues.runs.create_by_key": lambda c, w: c.annotation_queues.runs.create_by_key(
        w["queue"].id, body=[run_key(w)]
    ),
    "annotation_queues.runs.delete_all": lambda c, w: c.annotation_queues.runs.delete_all(
        w["queue"].id, delete_all=True
    ),
    "annotation_queues.items.create": keep(
        "queue_items",
        lambda c, w: c.annotation_queues.items.create(
            w["queue"].id, items=[{"item_type": "RUN", "run_id": w["run_id"], "project_id": w["project_id"]}]
        ),
    ),
    "annotation_queues.items.list": lambda c, w: c.annotation_queues.items.list(
        w["queue"].id, status="needs_my_review"
    ),
    "annotation_queues.items.retrieve_count": lambda c, w: c.annotation_queues.items.retrieve_count(
        w["queue"].id, status="all"
    ),
    "annotation_queues.items.retrieve_placement": lambda c, w: c.annotation_queues.items.retrieve_placement(
        w["queue_items"].items[0].id, queue_id=w["queue"].id
    ),
    "annotation_queues.items.create_status": lambda c, w: c.annotation_queues.items.create_status(
        w["queue_items"].items[0].id, status="viewed"
    ),
    "annotation_queues.items.update": lambda c, w: c.annotation_queues.items.update(
        w["queue_items"].items[0].id, queue_id=w["queue"].id, last_reviewed_time=START
    ),
    "annotation_queues.items.delete_all": lambda c, w: c.annotation_queues.items.delete_all(
        w["queue"].id, item_ids=[w["queue_items"].items[0].id]
    ),
    "annotation_queues.delete": lambda c, w: c.annotation_queues.delete(w["other_queue"].id),
    "delete_annotation_queue": lambda c, w: c.delete_annotation_queue(w["queue"].id),
    "create_prompt": lambda c, w: c.create_prompt(w["prompt"], description="A prompt", tags=["a"]),
    "get_prompt": lambda c, w: c.get_prompt(w["prompt"]),
    "update_prompt": lambda c, w: c.update_prompt(w["prompt"], readme="# Prompt"),
    "create_commit": lambda c, w: c.create_commit(w["prompt"], w["template"], tags="prod"),
    "push_prompt": lambda c, w: c.push_prompt(w["prompt"], object=ChatPromptTemplate.from_template("{a}")),
    "pull_prompt": lambda c, w: c.pull_prompt(w["prompt"]),
    "pull_prompt_commit": lambda c, w: c.pull_prompt_commit(f"{w['prompt']}:prod"),
    "list_prompt_commits": lambda c, w: c.list_prompt_commits(w["prompt"]),
    "list_prompts": lambda c, w: c.list_prompts(query=w["text"]),
    "like_prompt": lambda c, w: c.like_prompt(w["prompt"]),
    "unlike_prompt": lambda c, w: c.unlike_prompt(w["prompt"]),
    "delete_prompt": lambda c, w: c.delete_prompt(w["prompt"]),
    "agent_exists": lambda c, w: c.agent_exists(w["text"]),
    "skill_exists": lambda c, w: c.skill_exists(w["text"]),
    "push_agent": lambda c, w: c.push_agent(f"a-{w['text']}", files=FILES),
    "push_skill": lambda c, w: c.push_skill(f"s-{w['text']}", files=FILES),
    "pull_agent": lambda c, w: c.pull_agent(w["text"]),
    "pull_skill": lambda c, w: c.pull_skill(w["text"]),
    "list_agents": lambda c, w: c.list_agents(),
    "list_skills": lambda c, w: c.list_skills(),
    "delete_agent": lambda c, w: c.delete_agent(w["text"]),
    "delete_skill": lambda c, w: c.delete_skill(w["text"]),
    "datasets.list_v2": lambda c, w: c.datasets.list_v2(),
    "datasets.examples.update_metadata": lambda c, w: c.datasets.examples.update_metadata(
        w["dataset_id"], example_ids=[w["examples"][0]], operations=[{"key": "a", "operation": "SET", "value": 1}]
    ),
    "datasets.examples.delete": lambda c, w: c.datasets.examples.delete(w["examples"][5], dataset_id=w["dataset_id"]),
    "datasets.experiment_runs.query": lambda c, w: c.datasets.experiment_runs.query(
        w["dataset_id"], experiment_ids=[w["experiments"][0]]
    ),
    "runs.query": lambda c, w: c.runs.query(project_ids=[w["project_id"]], **PERIOD),
    "runs.retrieve": lambda c, w: c.runs.retrieve(w["run_id"], project_id=w["project_id"], start_time=START),
    "runs.query_v2": lambda c, w: c.runs.query_v2(project_ids=[w["project_id"]], **PERIOD),
    "runs.retrieve_v2": lambda c, w: c.runs.retrieve_v2(w["run_id"], project_id=w["project_id"], start_time=START),
    "runs.get_url": lambda c, w: c.runs.get_url(w["run_id"], project_id=w["project_id"], trace_id=w["run_id"]),
    "runs.streaming.query_v2": lambda c, w: c.runs.streaming.query_v2(project_ids=[w["project_id"]], **PERIOD),
    "runs.streaming.query_v2_items": lambda c, w: c.runs.streaming.query_v2_items(
        project_ids=[w["project_id"]], **PERIOD
    ),
    "runs.share.create": keep(
        "public_share",
        lambda c, w: c.runs.share.create(w["run_id"], session_id=w["project_id"], trace_id=w["run_id"]),
    ),
    "public.runs.retrieve": lambda c, w: c.public.runs.retrieve(
        w["run_id"], share_token=share_token(w), selects=["ID"], start_time=START
    ),
    "public.runs.query": lambda c, w: c.public.runs.query(share_token(w), selects=["ID"]),
    "runs.share.delete": lambda c, w: c.runs.share.delete(w["run_id"], session_id=w["project_id"]),
    "traces.list_runs": lambda c, w: c.traces.list_runs(w["run_id"], project_id=w["project_id"], **PERIOD),
    "traces.query": lambda c, w: c.traces.query(project_id=w["project_id"], **PERIOD),
    "traces.streaming.query": lambda c, w: c.traces.streaming.query(project_id=w["project_id"], **PERIOD),
    "traces.streaming.query_items": lambda c, w: c.traces.streaming.query_items(project_id=w["project_id"], **PERIOD),
    "threads.query": lambda c, w: c.threads.query(project_id=w["project_id"], **PERIOD),
    "threads.streaming.query": lambda c, w: c.threads.streaming.query(project_id=w["project_id"], **PERIOD),
    "threads.streaming.query_items": lambda c, w: c.threads.streaming.query_items(
        project_id=w["project_id"], **PERIOD
    ),
    "threads.list_traces": lambda c, w: c.threads.list_traces(w["thread"], project_id=w["project_id"]),
    "threads.stats": lambda c, w: c.threads.stats(w["thread"], session_id=w["project_id"], selects=["TURNS"]),
    "threads.aggregate_stats": lambda c, w: c.threads.aggregate_stats(
        project_id=w["project_id"], select=["THREAD_COUNT"], **PERIOD
    ),
    "threads.share.create": lambda c, w: c.threads.share.create(w["thread"], project_id=w["project_id"]),
    "threads.share.retrieve": lambda c, w: c.threads.share.retrieve(w["thread"], project_id=w["project_id"]),
    "threads.share.delete": lambda c, w: c.threads.share.delete(w["thread"], project_id=w["project_id"]),
    "agents.create": lambda c, w: c.agents.create(id="agent", name="agent"),
    "agents.retrieve": lambda c, w: c.agents.retrieve("agent"),
    "agents.update": lambda c, w: c.agents.update("agent", name="agent"),
    "agents.list": lambda c, w: c.agents.list(),
    "agents.delete": lambda c, w: c.agents.delete("agent"),
    "evaluators.create": lambda c, w: c.evaluators.create(name="evaluator", type="code"),
    "evaluators.retrieve": lambda c, w: c.evaluators.retrieve(unique()),
    "evaluators.update": lambda c, w: c.evaluators.update(unique(), name="renamed"),
    "evaluators.list": lambda c, w: c.evaluators.list(),
    "evaluators.delete": lambda c, w: c.evaluators.delete(unique()),
    "evaluators.bulk_delete": lambda c, w: c.evaluators.bulk_delete(evaluator_ids=[unique()]),
    "evaluators.spend": lambda c, w: c.evaluators.spend(period_start="2026-01-01"),
    "sandboxes.*": lambda c, w: c.sandboxes.boxes.retrieve("box"),
    "delete_feedback": lambda c, w: c.delete_feedback(w["feedback"].id),
    "delete_dataset": lambda c, w: c.delete_dataset(dataset_id=w["other_dataset"].id),
}


def share_token(w: World) -> str:
    return getattr(w.get("public_share"), "share_token", None) or unique()


def shared_link_token(client: Client, w: World) -> str:
    """The token of the link, which is `.../public/{token}/r`."""
    return client.share_run(w["run_id"]).rstrip("/").split("/")[-2]


ONLY_SYNC: dict[str, Call] = {
    "info": lambda c, w: c.info,
    "tracing_mode": lambda c, w: c.tracing_mode,
    "request_with_retries": lambda c, w: c.request_with_retries("GET", "/sessions", params={"limit": 1}),
    "batch_ingest_runs": lambda c, w: c.batch_ingest_runs(create=[run_fields(w)]),
    "multipart_ingest": lambda c, w: c.multipart_ingest(create=[run_fields(w)]),
    "flush": lambda c, w: c.flush(),
    "flush_compressed_traces": lambda c, w: c.flush_compressed_traces(),
    "get_run_url": lambda c, w: c.get_run_url(run=w["run"], project_id=w["project_id"]),
    "get_run_stats": lambda c, w: c.get_run_stats(project_ids=[w["project_id"]]),
    "read_thread": lambda c, w: c.read_thread(thread_id=w["thread"], project_id=w["project_id"]),
    "list_threads": lambda c, w: c.list_threads(project_id=w["project_id"], start_time=START - timedelta(days=1)),
    "read_shared_run": lambda c, w: c.read_shared_run(shared_link_token(c, w), w["run_id"]),
    "list_shared_runs": lambda c, w: c.list_shared_runs(shared_link_token(c, w)),
    "unshare_run": lambda c, w: c.unshare_run(w["run_id"]),
    "aread_project": lambda c, w: c.aread_project(project_id=w["project_id"]),
    "has_project": lambda c, w: c.has_project(w["project_name"]),
    "list_projects": lambda c, w: c.list_projects(name=w["project_name"]),
    "update_project": lambda c, w: c.update_project(w["project_id"], description="changed"),
    "get_experiment_results": lambda c, w: c.get_experiment_results(project_id=w["experiments"][0]),
    "has_dataset": lambda c, w: c.has_dataset(dataset_id=w["dataset_id"]),
    "list_dataset_versions": lambda c, w: c.list_dataset_versions(dataset_id=w["dataset_id"]),
    "read_dataset_version": keep(
        "version", lambda c, w: c.read_dataset_version(dataset_id=w["dataset_id"], as_of=datetime.now(timezone.utc))
    ),
    "update_dataset_tag": lambda c, w: c.update_dataset_tag(
        dataset_id=w["dataset_id"], as_of=w["version"].as_of if "version" in w else START, tag="prod"
    ),
    "diff_dataset_versions": lambda c, w: c.diff_dataset_versions(
        w["dataset_id"], from_version=w["filled_at"], to_version=datetime.now(timezone.utc)
    ),
    "list_dataset_splits": lambda c, w: c.list_dataset_splits(dataset_id=w["dataset_id"]),
    "update_dataset_splits": lambda c, w: c.update_dataset_splits(
        dataset_id=w["dataset_id"], split_name="test", example_ids=[w["examples"][0]]
    ),
    "upload_csv": lambda c, w: c.upload_csv(csv_file(), ["q"], ["a"], name=unique()),
    "upload_dataframe": lambda c, w: c.upload_dataframe(
        pandas.DataFrame({"q": [1], "a": [2]}), unique(), ["q"], ["a"]
    ),
    "read_dataset_openai_finetuning": fine_tuning,
    "create_examples": lambda c, w: c.create_examples(
        dataset_id=w["dataset_id"], examples=[{"inputs": {"q": 2}, "split": "test"}]
    ),
    "create_llm_example": lambda c, w: c.create_llm_example("in", "out", dataset_id=w["dataset_id"]),
    "create_chat_example": lambda c, w: c.create_chat_example(
        [{"type": "human", "data": {"content": "?"}}],
        {"type": "ai", "data": {"content": "!"}},
        dataset_id=w["dataset_id"],
    ),
    "create_example_from_run": lambda c, w: c.create_example_from_run(w["run"], dataset_id=w["dataset_id"]),
    "update_example": lambda c, w: c.update_example(w["example"].id, inputs={"q": 3}, split="train"),
    "update_examples": lambda c, w: c.update_examples(
        dataset_id=w["dataset_id"], updates=[{"id": w["examples"][0], "metadata": {"a": 1}}]
    ),
    "upload_examples_multipart": lambda c, w: c.upload_examples_multipart(
        dataset_id=w["dataset_id"],
        uploads=[ExampleCreate(inputs={"q": 4}, attachments={"note": ("text/plain", b"a")})],
    ),
    "update_examples_multipart": lambda c, w: c.update_examples_multipart(
        dataset_id=w["dataset_id"], updates=[ExampleUpdate(id=w["examples"][1], inputs={"q": 5})]
    ),
    "upsert_examples_multipart": lambda c, w: c.upsert_examples_multipart(
        upserts=[ExampleUpsertWithAttachments(dataset_id=w["dataset_id"], inputs={"q": 6}, outputs={"a": 6})]
    ),
    "delete_example": lambda c, w: c.delete_example(w["example"].id),
    "delete_examples": lambda c, w: c.delete_examples([w["examples"][3]]),
    "share_dataset": keep("dataset_share", lambda c, w: c.share_dataset(dataset_id=w["dataset_id"])),
    "read_dataset_shared_schema": lambda c, w: c.read_dataset_shared_schema(dataset_id=w["dataset_id"]),
    "read_shared_dataset": lambda c, w: c.read_shared_dataset(w["dataset_share"]["share_token"]),
    "list_shared_examples": lambda c, w: c.list_shared_examples(w["dataset_share"]["share_token"]),
    "list_shared_projects": lambda c, w: c.list_shared_projects(dataset_share_token=w["dataset_share"]["share_token"]),
    "clone_public_dataset": lambda c, w: c.clone_public_dataset(
        w["dataset_share"]["share_token"], dataset_name=unique()
    ),
    "unshare_dataset": lambda c, w: c.unshare_dataset(w["dataset_id"]),
    "create_comparative_experiment": lambda c, w: c.create_comparative_experiment(unique(), w["experiments"]),
    "evaluate": keep(
        "evaluated", lambda c, w: c.evaluate(lambda inputs: inputs, data=w["dataset"].name, evaluators=[evaluator])
    ),
    "get_test_results": lambda c, w: test_results(c, w["evaluated"].experiment_name),
    "aevaluate": lambda c, w: c.aevaluate(async_target, data=w["dataset"].name, evaluators=[evaluator]),
    "evaluate_run": lambda c, w: c.evaluate_run(w["run"], evaluator),
    "aevaluate_run": lambda c, w: c.aevaluate_run(w["run"], evaluator),
    "update_feedback": lambda c, w: c.update_feedback(
        c.create_feedback(w["run_id"], "changed", score=1, stop_after_attempt=1).id, score=0
    ),
    "create_presigned_feedback_tokens": lambda c, w: c.create_presigned_feedback_tokens(w["run_id"], ["a", "b"]),
    "list_presigned_feedback_tokens": lambda c, w: c.list_presigned_feedback_tokens(w["run_id"]),
    "create_feedback_formula": lambda c, w: c.create_feedback_formula(
        feedback_key="total", aggregation_type="sum", formula_parts=[]
    ),
    "list_feedback_formulas": lambda c, w: c.list_feedback_formulas(),
    "get_feedback_formula_by_id": lambda c, w: c.get_feedback_formula_by_id(unique()),
    "update_feedback_formula": lambda c, w: c.update_feedback_formula(
        unique(), feedback_key="total", aggregation_type="sum", formula_parts=[]
    ),
    "delete_feedback_formula": lambda c, w: c.delete_feedback_formula(unique()),
    "generate_insights": lambda c, w: c.generate_insights(
        chat_histories=[[{"role": "user", "content": "?"}]], openai_api_key="any"
    ),
    "poll_insights": lambda c, w: c.poll_insights(report=report(w), rate=1, timeout=2),
    "get_insights_report": lambda c, w: c.get_insights_report(report=report(w)),
    "list_project_issues": lambda c, w: c.list_project_issues(w["project_name"]),
    "sessions.create": lambda c, w: c.sessions.create(name=unique()),
    "sessions.retrieve": lambda c, w: c.sessions.retrieve(w["project_id"], include_stats=True),
    "sessions.update": lambda c, w: c.sessions.update(w["project_id"], description="changed again"),
    "sessions.delete": lambda c, w: c.sessions.delete(w["experiments"][1]),
    "sessions.create_v2": lambda c, w: c.sessions.create_v2(type="PROJECT"),
    "sessions.retrieve_v2": lambda c, w: c.sessions.retrieve_v2(w["project_id"]),
    "sessions.update_v2": lambda c, w: c.sessions.update_v2(w["project_id"]),
    "sessions.list_v2": lambda c, w: c.sessions.list_v2(),
    "sessions.dashboard": lambda c, w: c.sessions.dashboard(w["project_id"]),
    "sessions.resolve": lambda c, w: c.sessions.resolve(kind="EVALUATOR"),
    "cleanup": lambda c, w: c.cleanup(),
    "close": lambda c, w: c.close(),
}

ONLY_ASYNC: dict[str, Call] = {
    "info": lambda c, w: c.info(),
    "aclose": lambda c, w: c.aclose(),
}


async def main(url: str) -> None:
    options = {"api_url": f"{url}/api/v1", "api_key": "any"}
    client = Client(**options)
    await call_all("python", client, set_up(client), {**SHARED, **ONLY_SYNC}, names_in(client))
    world = set_up(Client(**options))
    async_client = AsyncClient(**options)
    await call_all("python_async", async_client, world, {**SHARED, **ONLY_ASYNC}, names_in(async_client))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(sys.argv[1]))
