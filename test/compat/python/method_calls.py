"""Calls every method of a client.

Prints a line of JSON for each method: {"client": ..., "method": ..., "error": null or text, "sent": [requests]}, and for each client a
line {"client": ..., "public": [names]}.
"""

import contextlib
import inspect
import json
import re
import sys
import time
from typing import Any, Callable

World = dict[str, Any]
Call = Callable[[Any, World], Any]


async def settle(value: Any) -> Any:
    """Awaits a result, and goes through a list to its end."""
    if hasattr(value, "__aiter__"):
        return [item async for item in value]
    if inspect.isawaitable(value):
        return await settle(await value)
    if inspect.isgenerator(value):
        return list(value)
    return value


def keep(name: str, call: Call) -> Call:
    """Stores the result for the calls after this one."""

    async def kept(client: Any, world: World) -> None:
        world[name] = await settle(call(client, world))

    return kept


def described(error: BaseException) -> str:
    """The text of an error, with the body of the response."""
    body = getattr(error, "body", None)
    return f"{type(error).__name__}: {error}" + (f" {json.dumps(body)}" if body else "")


# What is listed exists, with these exceptions: experiments are not shared with their dataset.
LISTS = re.compile(r"(^|\.|_)(list|query|search|history|versions)")
EMPTY_LISTS = {"list_shared_projects"}


async def call_all(
    name: str, client: Any, world: World, calls: dict[str, Call], public: list[str], sent: list[dict] | None = None
) -> None:
    """Calls the methods one after the other. `sent` is a list to which the client adds its requests."""
    requests = [] if sent is None else sent
    print(json.dumps({"client": name, "public": public}), flush=True)
    for method, call in calls.items():
        error = None
        started = time.monotonic()
        requests.clear()
        try:
            # evaluate() prints.
            with contextlib.redirect_stdout(sys.stderr):
                result = await settle(call(client, world))
            if LISTS.search(method) and result == [] and method not in EMPTY_LISTS:
                raise AssertionError("the list is empty")
        except (Exception, SystemExit) as failure:
            error = described(failure)
        seconds = round(time.monotonic() - started, 1)
        line = {"client": name, "method": method, "error": error, "seconds": seconds, "sent": requests}
        print(json.dumps(line), flush=True)
