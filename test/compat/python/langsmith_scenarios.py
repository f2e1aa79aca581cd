"""Uses the official Python client of experiments, one scenario after the other.

The argument is the server's URL; each scenario runs with it alone, and with `/api/v1` behind it.

Prints a line of JSON for each: {"scenario": ..., "ok": true}, or with "ok": false and the "reason".
"""

import asyncio
import io
import json
import statistics
import sys
import traceback
import warnings
from datetime import datetime, timedelta, timezone
from uuid import UUID

import requests
from checks import contains, has, same, unique
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langsmith import AsyncClient, Client
from langsmith.schemas import AttachmentsOperations, ExampleUpsertWithAttachments
from langsmith.utils import LangSmithConflictError, LangSmithError, LangSmithNotFoundError
from langsmith.uuid import uuid7

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
WEB_URL = "https://web.example"


def refused(call, kind: type[Exception], text: str) -> None:
    try:
        call()
    except kind as error:
        contains(error, text)
    else:
        raise AssertionError(f"expected {kind.__name__}, but it was answered")


def near(actual: float, expected: float) -> None:
    if abs(actual - expected) > 1e-9:
        raise AssertionError(f"expected {expected!r}, but got {actual!r}")


def latency(index: int) -> timedelta:
    return timedelta(milliseconds=50 + (index * 7919) % 997)


def row(index: int) -> dict:
    scores: list[dict] = [{"key": "correct", "score": index % 3 != 0}]
    if index % 4 != 1:
        scores.append({"key": "closeness", "score": ((index * 37) % 101) / 97})
    scores.append({"key": "tone", "value": ["dry", "warm"][index % 2]})
    start = START + timedelta(milliseconds=index)
    return {
        "row_id": unique(),
        "inputs": {"question": f"What is {index}?"},
        "expected_outputs": {"answer": index},
        "actual_outputs": {"answer": index + 1},
        "evaluation_scores": scores,
        "start_time": start.isoformat(),
        "end_time": (start + latency(index)).isoformat(),
        "run_name": ["even", "odd"][index % 2],
        "error": f"Failed at {index}" if index % 9 == 4 else None,
        "run_metadata": {"index": index},
    }


def upload(client: Client, n: int, **more) -> tuple[dict, dict, dict]:
    """Answers what was sent, the dataset and the experiment. Times without an offset are UTC, ids need no dashes."""
    body = {
        "experiment_name": f"py-{unique()}",
        "experiment_description": "from Python",
        "experiment_start_time": "2026-01-01T00:00:00",
        "experiment_end_time": "2026-01-01T01:00:00",
        "dataset_name": f"py-{unique()}",
        "dataset_description": None,
        "experiment_metadata": {"model": "small"},
        "summary_experiment_scores": [{"key": "f1", "score": 0.75, "comment": "over all"}],
        "results": [row(index) for index in range(n)],
        **more,
    }
    sent = {**body, "results": [{**each, "row_id": each["row_id"].replace("-", "")} for each in body["results"]]}
    response = requests.post(f"{client.api_url}/datasets/upload-experiment", json=sent, timeout=30)
    if response.status_code != 200:
        raise AssertionError(f"{response.status_code}: {response.text}")
    answer = response.json()
    return body, answer["dataset"], answer["experiment"]


def check_statistics(project, body: dict) -> None:
    rows = body["results"]
    seconds = [latency(index).total_seconds() for index in range(len(rows))]
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    same(project.run_count, len(rows))
    near(project.latency_p50.total_seconds(), cuts[49])
    # A timedelta has no more than microseconds.
    same(abs(project.latency_p99.total_seconds() - cuts[98]) < 1e-6, True)
    near(project.error_rate, sum(each["error"] is not None for each in rows) / len(rows))
    same(project.last_run_start_time, datetime.fromisoformat(rows[-1]["start_time"]))
    same([project.total_tokens, project.prompt_tokens, project.total_cost, project.first_token_p50], [None] * 4)
    all_scores = [score for each in rows for score in each["evaluation_scores"]]
    check_feedback(project.feedback_stats, all_scores)
    check_feedback(project.session_feedback_stats, body["summary_experiment_scores"])


def check_feedback(stats: dict, given: list[dict]) -> None:
    same(sorted(stats), sorted({score["key"] for score in given}))
    for key, found in stats.items():
        of_key = [score for score in given if score["key"] == key]
        same(found["n"], len(of_key))
        numbers = [float(score["score"]) for score in of_key if "score" in score]
        if numbers:
            near(found["avg"], statistics.fmean(numbers))
            same([found["min"], found["max"]], [min(numbers), max(numbers)])
        else:
            same([found["avg"], found["min"], found["max"], found["stdev"]], [None] * 4)
        if len(numbers) > 1:
            near(found["stdev"], statistics.stdev(numbers))
        labels = [score["value"] for score in of_key if "value" in score]
        same(found["values"], {label: labels.count(label) for label in labels})
        same(found["comments"], [score["comment"] for score in of_key if "comment" in score])


def projects(client: Client) -> None:
    """projects are read by id and by name, with their statistics"""
    body, dataset, experiment = upload(client, 37)
    project = client.read_project(project_id=experiment["id"], include_stats=True)
    check_statistics(project, body)
    same(project.name, body["experiment_name"])
    same(project.description, "from Python")
    same(project.metadata, {"model": "small"})
    same([project.start_time, project.end_time], [START, START + timedelta(hours=1)])
    same(project.reference_dataset_id, UUID(dataset["id"]))
    same(project.url, f"{WEB_URL}/o/{dataset['tenant_id']}/projects/p/{experiment['id']}")
    check_statistics(client.read_project(project_name=body["experiment_name"], include_stats=True), body)
    without = client.read_project(project_id=experiment["id"])
    same([without.run_count, without.latency_p50, without.feedback_stats], [None] * 3)
    same(client.has_project(body["experiment_name"]), True)
    same(client.has_project(unique()), False)
    refused(lambda: client.read_project(project_id=unique()), LangSmithNotFoundError, "not found")
    refused(lambda: client.read_project(project_name=unique()), LangSmithNotFoundError, "not found")


def project_lists(client: Client) -> None:
    """projects are listed by their dataset, names, ids and metadata"""
    name = unique()
    uploads = [upload(client, n, dataset_name=name, experiment_metadata={"n": n, "name": name}) for n in (2, 5)]
    ids = [UUID(experiment["id"]) for _, _, experiment in uploads]
    dataset_id = uploads[0][1]["id"]
    found = list(client.list_projects(reference_dataset_id=dataset_id, include_stats=True))
    same([project.id for project in found], ids[::-1])
    for project, (body, _, _) in zip(found[::-1], uploads):
        check_statistics(project, body)
    same([project.id for project in client.list_projects(reference_dataset_name=name)], ids[::-1])
    same([project.id for project in client.list_projects(reference_dataset_name=name, limit=1)], ids[1:])
    same([project.id for project in client.list_projects(metadata={"n": 2, "name": name})], ids[:1])
    same([project.id for project in client.list_projects(project_ids=ids[:1])], ids[:1])
    same([project.id for project in client.list_projects(name_contains=uploads[1][0]["experiment_name"][3:])], ids[1:])


def project_changes(client: Client) -> None:
    """projects are created, changed and deleted"""
    name = unique()
    made = client.create_project(name, description="by hand", metadata={"a": 1})
    same([made.name, made.description, made.metadata, made.reference_dataset_id], [name, "by hand", {"a": 1}, None])
    refused(lambda: client.create_project(name), LangSmithConflictError, "Session already exists.")
    same(client.create_project(name, upsert=True).id, made.id)
    end = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
    client.update_project(made.id, end_time=end)
    changed = client.read_project(project_id=made.id)
    same([changed.end_time, changed.description, changed.metadata], [end, "by hand", {"a": 1}])
    client.delete_project(project_id=made.id)
    same(client.has_project(name), False)
    refused(lambda: client.delete_project(project_id=made.id), LangSmithNotFoundError, "not found")


def datasets(client: Client) -> None:
    """datasets are created, read, found, shared and deleted"""
    name = unique()
    made = client.create_dataset(name, description="by hand", metadata={"key": name}, inputs_schema={"type": "object"})
    same([made.name, made.description, made.data_type.value], [name, "by hand", "kv"])
    same(made.inputs_schema, {"type": "object"})
    read = client.read_dataset(dataset_id=made.id)
    same(read, client.read_dataset(dataset_name=name))
    same([read.example_count, read.session_count, read.last_session_start_time], [0, 0, None])
    same(read.url, f"{WEB_URL}/o/{read._tenant_id}/datasets/{made.id}")
    refused(lambda: client.create_dataset(name), LangSmithConflictError, "Dataset already exists")
    same([client.has_dataset(dataset_name=name), client.has_dataset(dataset_id=made.id)], [True, True])
    same([client.has_dataset(dataset_name=unique()), client.has_dataset(dataset_id=unique())], [False, False])
    same([found.id for found in client.list_datasets(dataset_name_contains=name[4:])], [made.id])
    same([found.id for found in client.list_datasets(dataset_ids=[made.id])], [made.id])
    same([found.id for found in client.list_datasets(metadata={"key": name})], [made.id])
    shared = client.share_dataset(dataset_id=made.id)
    same(shared["url"], f"{WEB_URL}/public/{shared['share_token']}/d")
    same(client.share_dataset(dataset_name=name), shared)
    same(client.read_dataset_shared_schema(dataset_id=made.id), shared)
    client.create_examples(dataset_id=made.id, examples=[{"inputs": {"n": n}} for n in range(2)])
    same(client.read_shared_dataset(shared["share_token"]).id, made.id)
    same([example.inputs for example in client.list_shared_examples(shared["share_token"])], [{"n": 0}, {"n": 1}])
    same(list(client.list_shared_projects(dataset_share_token=shared["share_token"])), [])
    client.unshare_dataset(made.id)
    refused(lambda: client.read_shared_dataset(shared["share_token"]), Exception, "404")
    client.delete_dataset(dataset_name=name)
    refused(lambda: client.read_dataset(dataset_id=made.id), LangSmithNotFoundError, "not found")


def examples(client: Client) -> None:
    """examples are created, changed and deleted"""
    dataset = client.create_dataset(unique())
    answer = client.create_examples(
        dataset_id=dataset.id,
        examples=[
            {"inputs": {"n": 0}, "outputs": {"m": 0}, "metadata": {"level": 1}, "split": ["train", "hard"]},
            {"inputs": {"n": 1}, "outputs": {"m": 1}, "split": "test", "id": unique()},
        ],
    )
    same(answer["count"], 2)
    one, two = answer["example_ids"]
    read = client.read_example(one)
    same([read.inputs, read.outputs, read.dataset_id], [{"n": 0}, {"m": 0}, dataset.id])
    same(read.metadata, {"level": 1, "dataset_split": ["train", "hard"]})
    inputs = [{"n": 2}, {"n": 3}]
    legacy = client.create_examples(inputs=inputs, outputs=[{"m": 2}, None], dataset_name=dataset.name)
    same([client.read_example(id).outputs for id in legacy["example_ids"]], [{"m": 2}, None])
    single = client.create_example(inputs={"n": 4}, outputs={"m": 4}, dataset_id=dataset.id, metadata={"x": "é"})
    same([single.inputs, single.outputs, single.metadata], [{"n": 4}, {"m": 4}, {"x": "é", "dataset_split": ["base"]}])
    client.update_example(one, outputs={"m": "changed"})
    changed = client.read_example(one)
    same([changed.inputs, changed.outputs, changed.metadata], [read.inputs, {"m": "changed"}, read.metadata])
    client.update_examples(dataset_id=dataset.id, updates=[{"id": two, "inputs": {"n": "new"}, "split": ["train"]}])
    same([client.read_example(two).inputs, client.read_example(two).outputs], [{"n": "new"}, {"m": 1}])
    same([found.inputs["n"] for found in client.list_examples(dataset_id=dataset.id, splits=["train"])], ["new", 0])
    client.delete_example(one)
    client.delete_examples([two, str(single.id)])
    same([str(found.id) for found in client.list_examples(dataset_id=dataset.id)], legacy["example_ids"])
    refused(lambda: client.read_example(one), LangSmithNotFoundError, "not found")
    refused(lambda: client.delete_example(one), LangSmithNotFoundError, "not found")


def example_lists(client: Client) -> None:
    """examples are listed to the last, by ids, metadata and moments"""
    dataset = client.create_dataset(unique())
    made = client.create_examples(
        dataset_id=dataset.id, examples=[{"inputs": {"n": n}, "metadata": {"even": n % 2 == 0}} for n in range(130)]
    )["example_ids"]

    def numbers(**query) -> list[int]:
        return [example.inputs["n"] for example in client.list_examples(dataset_id=dataset.id, **query)]

    same(numbers(), list(range(130)))
    same(numbers(limit=120), list(range(120)))
    same(numbers(limit=3, offset=10), [10, 11, 12])
    same(numbers(metadata={"even": False}, limit=2), [1, 3])
    same(numbers(filter="has(metadata, '{\"even\": false}')", limit=2), [1, 3])
    same([found.inputs for found in client.list_examples(example_ids=made[4:5])], [{"n": 4}])
    same([list(found.inputs) for found in client.list_examples(dataset_name=dataset.name, limit=1)], [["n"]])
    [first] = client.list_dataset_versions(dataset_id=dataset.id)
    same(first.tags, ["latest"])
    client.delete_examples(made[1:])
    same(numbers(), [0])
    same(numbers(as_of="latest"), [0])
    same(len(numbers(as_of=first.as_of)), 130)


def dataset_splits(client: Client) -> None:
    """datasets have splits, which examples join and leave"""
    dataset = client.create_dataset(unique())
    examples = [{"inputs": {"n": n}, "split": split} for n, split in enumerate(["train", ["train", "hard"], None])]
    ids = client.create_examples(dataset_id=dataset.id, examples=examples)["example_ids"]
    same(client.list_dataset_splits(dataset_id=dataset.id), ["base", "hard", "train"])
    client.update_dataset_splits(dataset_id=dataset.id, split_name="all", example_ids=ids)
    client.update_dataset_splits(dataset_name=dataset.name, split_name="train", example_ids=ids[:1], remove=True)
    same(client.read_example(ids[0]).metadata, {"dataset_split": ["all"]})
    same(client.read_example(ids[2]).metadata, {"dataset_split": ["base", "all"]})
    same([found.inputs["n"] for found in client.list_examples(dataset_id=dataset.id, splits=["train"])], [1])
    refused(
        lambda: client.update_dataset_splits(dataset_id=unique(), split_name="x", example_ids=ids),
        LangSmithNotFoundError,
        "Dataset not found",
    )


def dataset_versions(client: Client) -> None:
    """datasets have versions, which are found by time and tag, and compared"""
    dataset = client.create_dataset(unique())
    first = client.create_example(inputs={"n": 1}, dataset_id=dataset.id)
    client.update_dataset_tag(dataset_id=dataset.id, as_of=first.modified_at, tag="prod")
    second = client.create_example(inputs={"n": 2}, dataset_id=dataset.id)
    client.update_example(first.id, inputs={"n": 3})
    same(client.read_dataset_version(dataset_id=dataset.id, tag="prod").as_of, first.modified_at)
    same(client.read_dataset_version(dataset_id=dataset.id, as_of=first.modified_at).tags, ["prod"])
    same([version.tags for version in client.list_dataset_versions(dataset_id=dataset.id)], [["latest"], None, ["prod"]])
    same([found.inputs for found in client.list_examples(dataset_id=dataset.id, as_of="prod")], [{"n": 1}])
    same(client.read_example(first.id, as_of=first.modified_at).inputs, {"n": 1})
    same(client.list_dataset_splits(dataset_id=dataset.id, as_of="prod"), ["base"])
    diff = client.diff_dataset_versions(dataset.id, from_version="prod", to_version="latest")
    same([diff.examples_modified, diff.examples_added, diff.examples_removed], [[first.id], [second.id], []])
    refused(lambda: client.read_dataset_version(dataset_id=dataset.id, tag="x"), LangSmithNotFoundError, "version")


def dataset_files(client: Client) -> None:
    """datasets are uploaded as CSV, read as chats, and cloned"""
    name = unique()
    file = ("chats.csv", io.BytesIO(b"question,answer\nHi,Hello\n"))
    made = client.upload_csv(file, ["question"], ["answer"], name=name, description="by hand")
    same([made.name, made.example_count, made.description], [name, 1, "by hand"])
    chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    same(client.read_dataset_openai_finetuning(made.id), [chat])
    client.create_llm_example("Hi", "Hello", dataset_id=made.id)
    message = {"type": "human", "data": {"content": "Hi"}}
    client.create_chat_example([message], {"type": "ai", "data": {"content": "Hello"}}, dataset_id=made.id)
    same(client.read_dataset_openai_finetuning(dataset_name=name), [chat, chat, chat])
    body, dataset, experiment = upload(client, 130)
    token = client.share_dataset(dataset_id=dataset["id"])["share_token"]
    clone = client.clone_public_dataset(token, dataset_name=unique())
    same([found.inputs for found in client.list_examples(dataset_id=clone.id)], [row["inputs"] for row in body["results"]])
    run = next(client.list_runs(project_id=experiment["id"], order="asc"))
    copied = client.create_example_from_run(run, dataset_id=clone.id)
    same([copied.inputs, copied.outputs], [run.inputs, run.outputs])


def example_attachments(client: Client) -> None:
    """examples have attachments, and what their run has"""
    dataset = client.create_dataset(unique())
    data = bytes(range(256))
    attachments = {"a.bin": ("application/octet-stream", data), "note": {"mime_type": "text/plain", "data": b"\r\n"}}
    made = client.create_example(inputs={"n": 1}, dataset_id=dataset.id, attachments=attachments)
    same({name: (info["mime_type"], info["reader"].read()) for name, info in made.attachments.items()}, {
        "a.bin": ("application/octet-stream", data),
        "note": ("text/plain", b"\r\n"),
    })
    [found] = client.list_examples(dataset_id=dataset.id, include_attachments=True)
    same(found.attachments["a.bin"]["reader"].read(), data)
    operations = AttachmentsOperations(rename={"a.bin": "b.bin"}, retain=[])
    client.update_example(made.id, attachments_operations=operations, attachments={"new": ("text/plain", b"new")})
    changed = client.read_example(made.id)
    same({name: info["reader"].read() for name, info in changed.attachments.items()}, {"b.bin": data, "new": b"new"})
    body, _, experiment = upload(client, 1)
    run = next(client.list_runs(project_id=experiment["id"]))
    copied = client.create_example(dataset_id=dataset.id, source_run_id=run.id, use_source_run_io=True)
    same([copied.inputs, copied.outputs, copied.source_run_id], [run.inputs, run.outputs, run.id])
    upsert = ExampleUpsertWithAttachments(id=made.id, dataset_id=dataset.id, inputs={"n": 2})
    same(client.upsert_examples_multipart(upserts=[upsert])["example_ids"], [str(made.id)])
    same([client.read_example(made.id).inputs, list(client.read_example(made.id).attachments)], [{"n": 2}, ["b.bin", "new"]])
    client.delete_examples([made.id], hard_delete=True)
    same(list(client.list_examples(dataset_id=dataset.id, as_of=made.modified_at)), [])


def async_datasets(client: Client) -> None:
    """the asynchronous client reads and writes datasets and examples"""

    async def ask() -> None:
        other = AsyncClient(api_url=client.api_url, api_key="any", web_url=WEB_URL)
        dataset = await other.create_dataset(unique(), inputs_schema_definition={"required": ["n"]})
        made = await other.create_example({"n": 1}, {"m": 1}, dataset_id=dataset.id, split="train")
        same((await other.read_example(made.id)).metadata, {"dataset_split": ["train"]})
        selected = other.list_examples(dataset_id=dataset.id, select=["dataset_id", "inputs"], exclude_default_fields=True)
        same([(found.inputs, found.outputs) async for found in selected], [({"n": 1}, None)])
        try:
            await other.create_example({"x": 1}, dataset_id=dataset.id)
        except Exception as error:
            contains(error, "is missing the required property")
        else:
            raise AssertionError("expected a refusal")
        await other.delete_dataset(dataset.id)

    asyncio.run(ask())


def runs(client: Client) -> None:
    """runs are listed to the last, filtered, and read"""
    body, dataset, experiment = upload(client, 120)
    rows = body["results"]
    project_id = experiment["id"]

    def found(**query) -> list[int]:
        return [run.extra["metadata"]["index"] for run in client.list_runs(project_id=project_id, **query)]

    same(found(), list(range(119, -1, -1)))
    same(found(limit=110), list(range(119, 9, -1)))
    same(found(order="asc", limit=3), [0, 1, 2])
    same(found(error=True), [index for index in range(119, -1, -1) if index % 9 == 4])
    same(found(is_root=True, filter='eq(name, "odd")', limit=2), [119, 117])
    same(found(is_root=False), [])
    same(found(reference_example_id=rows[7]["row_id"]), [7])
    same(found(start_time=START + timedelta(milliseconds=118)), [119, 118])
    same(found(filter='and(eq(feedback_key, "correct"), eq(feedback_score, 0))', limit=2), [117, 114])
    refused(lambda: found(filter="eq(name)"), LangSmithError, "At 7")
    [run] = client.list_runs(project_name=body["experiment_name"], reference_example_id=rows[4]["row_id"])
    read = client.read_run(run.id)
    same([read.name, read.run_type, read.status, read.error], ["even", "chain", "error", "Failed at 4"])
    same([read.inputs, read.outputs], [rows[4]["inputs"], rows[4]["actual_outputs"]])
    same([read.start_time, read.end_time - read.start_time], [START + timedelta(milliseconds=4), latency(4)])
    same([read.session_id, read.trace_id, read.parent_run_id], [UUID(project_id), run.id, None])
    same(read.reference_example_id, UUID(rows[4]["row_id"]))
    check_feedback(read.feedback_stats, rows[4]["evaluation_scores"])
    same(read.url, f"{WEB_URL}/o/{dataset['tenant_id']}/projects/p/{project_id}/r/{run.id}")
    contains(client.get_run_url(run=run, project_id=project_id), f"{WEB_URL}/o/{dataset['tenant_id']}/projects/p/")
    same(client.read_run(run.id, load_child_runs=True).child_runs, [])
    refused(lambda: client.read_run(unique()), LangSmithNotFoundError, "not found")
    stats = client.get_run_stats(project_ids=[project_id], error=True)
    has(stats, {"run_count": len(found(error=True)), "error_rate": 1, "total_tokens": None})


def feedback(client: Client) -> None:
    """feedback is listed, created, changed and deleted, and the statistics follow"""
    body, _, experiment = upload(client, 4)
    project_id = experiment["id"]
    run = next(client.list_runs(project_id=project_id, order="asc"))
    listed = list(client.list_feedback(run_ids=[run.id], feedback_key=["tone"]))
    same([(each.key, each.value, each.score, each.run_id) for each in listed], [("tone", "dry", None, run.id)])
    same([each.key for each in client.list_feedback(run_ids=[run.id], feedback_source_type=["model"])], [])

    def ofProject() -> dict:
        return client.read_project(project_id=project_id, include_stats=True).feedback_stats

    made = client.create_feedback(
        run.id,
        "correct",
        score=True,
        comment="by hand",
        source_info={"who": "me"},
        feedback_config={"type": "continuous", "min": 0, "max": 1, "categories": None},
        trace_id=run.trace_id,
        session_id=project_id,
    )
    # The client sends feedback in the background when it knows the trace.
    client.flush()
    scores = [score for each in body["results"] for score in each["evaluation_scores"]]
    check_feedback(ofProject(), [*scores, {"key": "correct", "score": True, "comment": "by hand"}])
    read = client.read_feedback(made.id)
    same([read.score, read.comment, read.run_id, read.session_id], [1, "by hand", run.id, UUID(project_id)])
    same(read.feedback_source.metadata, {"who": "me"})
    client.update_feedback(made.id, score=0.5, value="half")
    check_feedback(ofProject(), [*scores, {"key": "correct", "score": 0.5, "value": "half", "comment": "by hand"}])
    client.delete_feedback(made.id)
    check_feedback(ofProject(), scores)
    on_project = client.create_feedback(project_id=project_id, key="overall", score=1, value={"any": "thing"})
    summary = client.read_project(project_id=project_id, include_stats=True).session_feedback_stats
    check_feedback(summary, [*body["summary_experiment_scores"], {"key": "overall", "score": 1}])
    client.delete_feedback(on_project.id)
    refused(lambda: client.read_feedback(made.id), LangSmithNotFoundError, "not found")
    early = client.create_feedback(unique(), "early", score=1)
    same([client.read_feedback(early.id).run_id, ofProject().get("early")], [early.run_id, None])


def feedback_configs(client: Client) -> None:
    """what a feedback key means is said, found, changed and forgotten"""
    key = unique()
    config = {"type": "categorical", "categories": [{"value": 0, "label": "no"}, {"value": 1, "label": "yes"}]}
    made = client.create_feedback_config(key, feedback_config=config, is_lower_score_better=True)
    same([made.feedback_key, made.is_lower_score_better], [key, True])
    same([found.feedback_key for found in client.list_feedback_configs(feedback_key=[key])], [key])
    same(client.update_feedback_config(key, is_lower_score_better=False).is_lower_score_better, False)
    client.delete_feedback_config(key)
    same(list(client.list_feedback_configs(feedback_key=[key])), [])


def shared_projects(client: Client) -> None:
    """projects that are shared with their dataset are listed under its token"""
    name = unique()
    ids = [UUID(upload(client, 2, dataset_name=name, experiment_name=f"{name} {n}")[2]["id"]) for n in range(2)]
    dataset = client.read_dataset(dataset_name=name)
    url = f"{client.api_url}/datasets/{dataset.id}/share?share_projects=true"
    token = requests.put(url, timeout=30).json()["share_token"]

    def found(**query) -> list[UUID]:
        return [project.id for project in client.list_shared_projects(dataset_share_token=token, **query)]

    same(found(), ids[::-1])
    same(found(project_ids=ids[:1]), ids[:1])
    same(found(name=f"{name} 1"), ids[1:])
    same(found(name_contains=f"{name[9:]} 0"), ids[:1])
    same(found(limit=1), ids[1:])


def results(client: Client) -> None:
    """the results of an experiment are gone through example by example"""
    body, _, experiment = upload(client, 105)
    project_id = UUID(experiment["id"])
    found = client.get_experiment_results(project_id=project_id)
    has(found["run_stats"], {"run_count": 105, "total_tokens": None, "total_cost": None})
    same(sorted(found["feedback_stats"]), ["closeness", "correct", "f1", "tone"])
    rows = body["results"]
    shown = list(found["examples_with_runs"])
    same([str(example.id) for example in shown], [each["row_id"] for each in rows])
    for example, each in zip(shown, rows):
        [run] = example.runs
        same([example.inputs, example.outputs], [each["inputs"], each["expected_outputs"]])
        same([run.outputs, run.error], [each["actual_outputs"], each["error"]])
    preview = client.get_experiment_results(name=body["experiment_name"], preview=True, limit=2)
    same([example.runs[0].outputs for example in preview["examples_with_runs"]], [None, None])
    filters = {project_id: ['eq(status, "error")']}
    failed = client.get_experiment_results(project_id=project_id, filters=filters)
    failed_ids = [each["row_id"] for each in rows if each["error"]]
    same([str(example.id) for example in failed["examples_with_runs"]], failed_ids)


def comparative(client: Client) -> None:
    """experiments are kept together for comparison"""
    name = unique()
    ids = [UUID(upload(client, 2, dataset_name=name)[2]["id"]) for _ in range(2)]
    made = client.create_comparative_experiment("A or B", ids, metadata={"judge": "large"})
    same([made.name, made.metadata, made.description], ["A or B", {"judge": "large"}, None])
    same([info["id"] for info in made.experiments_info], [str(id) for id in ids])
    again = lambda: client.create_comparative_experiment("A", ids, id=made.id)  # noqa: E731
    refused(again, LangSmithConflictError, str(made.id))


def version_2(client: Client) -> None:
    """version 2 answers runs page by page, and examples side by side"""
    body, dataset, experiment = upload(client, 25)

    async def ask() -> None:
        query = {"project_ids": [experiment["id"]], "selects": ["ID", "STATUS", "METADATA"], "page_size": 10}
        runs = [run async for run in client.runs.query(**query)]
        same([run.metadata["index"] for run in runs], list(range(24, -1, -1)))
        run = await client.runs.retrieve(
            runs[0].id, project_id=experiment["id"], start_time=body["results"][24]["start_time"], selects=["INPUTS"]
        )
        same(run.inputs, body["results"][24]["inputs"])
        side_by_side = client.datasets.experiment_runs.query(dataset["id"], experiment_ids=[experiment["id"]], page_size=10)
        same([example.id async for example in side_by_side], [each["row_id"] for each in body["results"]])
        name = unique()
        ids = [str(client.create_dataset(f"{name} {n}").id) for n in range(5)]
        listed = client.datasets.list_v2(name_contains=name, sort_by="name", sort_order="asc", page_size=2)
        same([found.id async for found in listed], ids)
        [first, second] = client.create_examples(dataset_id=ids[0], examples=[{"inputs": {}}, {"inputs": {}}])["example_ids"]
        operation = {"key": "level", "operation": "SET", "value": 1}
        changed = await client.datasets.examples.update_metadata(ids[0], example_ids=[first, ids[0]], operations=[operation])
        same([status.status for status in changed.statuses], ["UPDATED", "NOT_FOUND"])
        same(client.read_example(first).metadata, {"level": 1, "dataset_split": ["base"]})
        await client.datasets.examples.delete(second, dataset_id=ids[0])
        refused(lambda: client.read_example(second), LangSmithNotFoundError, "not found")

    asyncio.run(ask())


def prompts(client: Client) -> None:
    """prompts are pushed, pulled as they were, and committed on the latest commit only"""
    name = f"prompt-{unique()}"
    messages = [("system", "You speak {language}."), ("placeholder", "{history}"), ("human", "{input}")]
    template = ChatPromptTemplate.from_messages(messages)
    url = client.push_prompt(name, object=template, commit_tags=["prod", "first"], description="Greets")
    first = client.pull_prompt_commit(name, skip_cache=True).commit_hash
    contains(url, f"/prompts/{name}/{first[:8]}")
    values = {"language": "Dutch", "input": "Hello", "history": [("human", "a"), ("ai", "b")]}
    for version in ("", ":prod", ":latest", f":{first}", f":{first[:8]}"):
        pulled = client.pull_prompt(name + version, skip_cache=True)
        same(pulled.messages, template.messages)
        same(pulled.invoke(values), template.invoke(values))
        same(pulled.metadata["lc_hub_commit_hash"], first)
    refused(lambda: client.push_prompt(name, object=template), LangSmithConflictError, "Nothing to commit")
    chain = template | StrOutputParser()
    client.create_commit(name, chain, parent_commit_hash=first, description="with a parser")
    other = ChatPromptTemplate.from_template("{a}")
    late = lambda: client.create_commit(name, other, parent_commit_hash=first)  # noqa: E731
    refused(late, LangSmithConflictError, "the latest commit of the prompt")
    same(client.pull_prompt(name, skip_cache=True).messages, template.messages)
    same(client.pull_prompt(name, include_model=True, skip_cache=True).steps[1], StrOutputParser())
    commits = list(client.list_prompt_commits(name))
    same([commit.parent_commit_hash for commit in commits], [first, None])
    has(client.get_prompt(name).model_dump(), {"num_commits": 2, "description": "Greets", "is_public": False})
    client.delete_prompt(name)
    same(client.get_prompt(name), None)
    refused(lambda: client.pull_prompt(name, skip_cache=True), LangSmithNotFoundError, "Prompt not found")
def traced(client: Client, project: str, count: int = 1, **fields) -> list[str]:
    """Roots with one run below each."""
    ids = []
    for n in range(count):
        root, child = uuid7(), uuid7()
        start = START + timedelta(minutes=n)
        for run_id, parent in ((root, None), (child, root)):
            client.create_run(
                f"run {n}",
                {"question": n},
                "chain",
                id=run_id,
                trace_id=root,
                parent_run_id=parent,
                dotted_order=".".join(f"{start:%Y%m%dT%H%M%S%fZ}{each}" for each in ((root, child) if parent else (root,))),
                project_name=project,
                start_time=start,
                end_time=start + timedelta(seconds=1),
                outputs={"answer": n},
                **(fields if parent is None else {}),
            )
        ids.append(str(root))
    client.flush()
    return ids


def shared_runs(client: Client) -> None:
    """runs are shared by a link, read with it, and closed"""
    project = unique()
    [root] = traced(client, project)
    same(client.run_is_shared(root), False)
    link = client.share_run(root)
    same(client.read_run_shared_link(root), link)
    same(client.run_is_shared(root), True)
    shared = client.read_shared_run(link.removesuffix("/r").rsplit("/", 1)[-1])
    same([str(shared.id), shared.inputs, len(shared.child_run_ids)], [root, {"question": 0}, 1])
    token = link.removesuffix("/r").rsplit("/", 1)[-1]
    child = client.read_shared_run(token, shared.child_run_ids[0])
    same(str(child.parent_run_id), root)
    same({run.id for run in client.list_shared_runs(token)}, {shared.id, child.id})
    same([run.id for run in client.list_shared_runs(token, run_ids=[str(child.id)])], [child.id])
    client.unshare_run(root)
    same(client.run_is_shared(root), False)
    refused(lambda: client.read_shared_run(token), LangSmithNotFoundError, "Share not found")

    async def version_2_share() -> None:
        created = await client.runs.share.create(root, session_id=str(shared.session_id), trace_id=root)
        answer = await client.public.runs.query(created.share_token, selects=["NAME"])
        same([run.name for run in answer.items], ["run 0", "run 0"])
        await client.runs.share.delete(root, session_id=str(shared.session_id))

    asyncio.run(version_2_share())


def threads(client: Client) -> None:
    """threads are listed, read and counted"""
    project = unique()
    ids = traced(client, project, 3, extra={"metadata": {"thread_id": "t"}})
    traced(client, project, 1)
    project_id = str(client.read_project(project_name=project).id)
    same([str(run.id) for run in client.read_thread(thread_id="t", project_name=project)], ids)
    listed = client.list_threads(project_name=project, start_time=START)
    same([(thread["thread_id"], thread["count"]) for thread in listed], [("t", 3)])

    async def version_2_threads() -> None:
        found = [thread async for thread in client.threads.query(project_id=project_id)]
        same([(thread.thread_id, thread.count) for thread in found], [("t", 3)])
        traces = client.threads.list_traces("t", project_id=project_id, selects=["OUTPUTS"], page_size=2)
        same([(trace.trace_id, trace.outputs["answer"]) async for trace in traces], list(zip(ids, range(3))))
        stats = await client.threads.stats("t", session_id=project_id, selects=["TURNS", "LATENCY_P50"])
        same([stats.turns, stats.latency_p50_seconds], [3, 1])

    asyncio.run(version_2_threads())


def feedback_tokens(client: Client) -> None:
    """feedback is sent with a token instead of a key"""
    [root] = traced(client, unique())
    token = client.create_presigned_feedback_token(root, "thumbs", expiration=timedelta(hours=1))
    client.create_feedback_from_token(token.id, score=0)
    same(requests.get(f"{token.url}?score=1&comment=fine").status_code, 200)
    [only] = client.list_feedback(run_ids=[root])
    same([only.key, only.score, only.comment], ["thumbs", 1, "fine"])
    more = client.create_presigned_feedback_tokens(root, ["a", "b"])
    same({each.id for each in client.list_presigned_feedback_tokens(root)}, {token.id, *(each.id for each in more)})


SCENARIOS = [
    projects,
    project_lists,
    project_changes,
    datasets,
    examples,
    example_lists,
    dataset_splits,
    dataset_versions,
    dataset_files,
    example_attachments,
    async_datasets,
    runs,
    feedback,
    feedback_configs,
    shared_projects,
    results,
    comparative,
    version_2,
    prompts,
    shared_runs,
    threads,
    feedback_tokens,
]


def report(scenario: str, error: BaseException | None) -> None:
    line: dict = {"scenario": scenario, "ok": error is None}
    if error is not None:
        line["reason"] = "".join(traceback.format_exception(error))[-3000:]
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    # It says of most of these methods that they will be gone in 2027.
    warnings.simplefilter("ignore")
    for prefix in ("", "/api/v1"):
        client = Client(api_url=f"{sys.argv[1]}{prefix}", api_key="any", web_url=WEB_URL)
        for scenario in SCENARIOS:
            name = f"{prefix or '/'}: {scenario.__doc__}"
            try:
                scenario(client)
                report(name, None)
            except Exception as error:
                report(name, error)
