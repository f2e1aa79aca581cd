"""Evaluates a function on the dataset in argv, and prints the seconds until everything was sent."""

import os
import sys
import time

from langsmith import evaluate, traceable
from langsmith.run_trees import get_cached_client

client = get_cached_client()


@traceable(run_type="tool")
def step(n):
    return 2 * n


def target(inputs):
    return {"answer": step(inputs["n"])}


def correct(outputs, reference_outputs):
    return outputs["answer"] == reference_outputs["answer"]


result, sys.stdout = sys.stdout, open(os.devnull, "w")
started_at = time.perf_counter()
evaluate(target, data=sys.argv[1], evaluators=[correct], max_concurrency=8)
client.flush()
print(time.perf_counter() - started_at, file=result)
