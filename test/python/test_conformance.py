"""LangGraph's conformance tests of checkpointers, through the socket of a host."""

import json

import pytest

from conftest import BASIC
from service import Service


@pytest.mark.parametrize("is_sync", [False, True])
async def test_conformance(bare_service: Service, is_sync: bool) -> None:
    bare_service.deletes_threads = True
    loaded = await bare_service.load(BASIC.parent / "conformance", {"conformance": "graphs.py:builder"})
    assert loaded["failures"] == {}
    outcome, _ = await bare_service.run("conformance", input={"is_sync": is_sync, "deletes_threads": True})
    assert outcome["ended"] == "success", outcome
    results = json.loads(outcome["output"])["results"]
    assert set(results) == {"put", "put_writes", "get_tuple", "list", "delete_thread"}
    assert [failures for _, failures in results.values()] == [[], [], [], [], []]
    assert sum(passed for passed, _ in results.values()) >= 58
