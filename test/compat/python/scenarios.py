"""Uses the official Python client, one scenario after the other.

The arguments are the server's URL, and another one where connections break once.

Prints a line of JSON for each: {"scenario": ..., "ok": true}, or with "ok": false and the "reason".
"""

import asyncio
import json
import sys
import traceback
import warnings

import with_async
import with_remote_graph
import with_sync
from langgraph_sdk import get_client, get_sync_client


def report(scenario: str, error: BaseException | None) -> None:
    line: dict = {"scenario": scenario, "ok": error is None}
    if error is not None:
        line["reason"] = "".join(traceback.format_exception(error))[-3000:]
    print(json.dumps(line), flush=True)


async def run_async(url: str, scenarios: list) -> None:
    async with get_client(url=url, api_key=None) as client:
        for scenario in scenarios:
            try:
                await asyncio.wait_for(scenario(client), timeout=30)
                report(f"async: {scenario.__doc__}", None)
            except Exception as error:
                report(f"async: {scenario.__doc__}", error)


async def run_remote_graph(url: str) -> None:
    for scenario in with_remote_graph.SCENARIOS:
        try:
            await asyncio.wait_for(scenario(url), timeout=30)
            report(f"RemoteGraph: {scenario.__doc__}", None)
        except Exception as error:
            report(f"RemoteGraph: {scenario.__doc__}", error)


def run_sync(url: str) -> None:
    with get_sync_client(url=url, api_key=None) as client:
        for scenario in with_sync.SCENARIOS:
            try:
                scenario(client)
                report(f"sync: {scenario.__doc__}", None)
            except Exception as error:
                report(f"sync: {scenario.__doc__}", error)


if __name__ == "__main__":
    url, breaking_url = sys.argv[1:]
    asyncio.run(run_async(url, with_async.SCENARIOS))
    # The client warns when it comes back; that is what happens here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(run_async(breaking_url, with_async.BREAKING))
    run_sync(url)
    asyncio.run(run_remote_graph(url))
