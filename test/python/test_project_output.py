"""Logs, the store, and the config of nodes."""

import json

from service import Service


async def test_logs(service: Service) -> None:
    _, order = await service.run("talk", input={"text": "x"})
    logs = service.logs()
    run = {"run_id": order["run_id"], "epoch": 1}
    assert all(log["run"] == run for log in logs)
    assert [(log["level"], log["message"], json.loads(log["fields"])) for log in logs] == [
        ("info", "from print", {"stream": "stdout"}),
        ("warn", "from stderr", {"stream": "stderr"}),
        ("warn", "from logger 1", {"logger": "project"}),
        ("info", "from thread", {"stream": "stdout"}),
        ("info", "no newline", {"stream": "stdout"}),
    ]


async def test_store(service: Service) -> None:
    outcome, _ = await service.run("remember", input={"text": "x"})
    assert outcome["ended"] == "success", outcome
    value, count, namespaces, year = json.loads(outcome["output"])["log"]
    assert value == {"name": "Ada\ufffd"} and count == 2 and namespaces == [["users", "1"]] and year == 2026
    operations = [
        operation
        for message in service.requests
        if message["request"]["op"] == "store"
        for operation in message["request"]["operations"]
    ]
    assert [operation["kind"] for operation in operations] == ["put", "put", "get", "search", "namespaces", "delete"]
    assert operations[1] == {
        "kind": "put",
        "namespace": ["users", "1"],
        "key": "age",
        "value": '{"age":36}',
        "index": False,
    }
    assert operations[4]["prefix"] == ["users"]


async def test_store_in_threads_and_time_to_live(service: Service) -> None:
    outcome, _ = await service.run("remember_in_threads", input={"text": "x"})
    assert outcome["ended"] == "success", outcome
    assert json.loads(outcome["output"])["log"] == [2]
    operations = [
        operation
        for message in service.requests
        if message["request"]["op"] == "store"
        for operation in message["request"]["operations"]
    ]
    assert operations[-3]["ttl"] == 5 and operations[-2]["refresh_ttl"] is False


async def test_config(service: Service) -> None:
    config = {
        "configurable": {"key": "value", "langgraph_auth_user": {"identity": "ada"}, "langgraph_auth_permissions": []},
        "metadata": {"m": 1},
        "tags": ["t"],
        "recursion_limit": 9,
    }
    outcome, order = await service.run("show_config", input={"text": "x"}, config=config)
    configurable, metadata, tags, limit = json.loads(outcome["output"])["log"]
    assert configurable["key"] == "value" and configurable["langgraph_auth_user"] == {"identity": "ada"}
    for name in ("thread_id", "run_id", "graph_id", "assistant_id"):
        assert configurable[name] == order[name] == metadata[name]
    assert metadata["m"] == 1 and metadata["key"] == "value" and metadata["run_attempt"] == 1
    assert tags == ["t"] and limit == 9
    (row, *_) = service.rows.checkpoints.values()
    stored = json.loads(row["metadata"])
    assert stored["m"] == 1 and stored["key"] == "value" and "langgraph_auth_user" not in stored
