"""LangGraph alone in one Python process with an InMemorySaver. Prints the runs per second of a graph with one node at a concurrency."""

import asyncio
import sys
import time
from pathlib import Path
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent / "graphs/python"))
from graphs import step  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402

concurrency, seconds = int(sys.argv[1]), float(sys.argv[2])
step.checkpointer = InMemorySaver()


async def loop(end: float) -> int:
    calls = 0
    while time.perf_counter() < end:
        await step.ainvoke({"text": "hello"}, {"configurable": {"thread_id": str(uuid4())}})
        calls += 1
    return calls


async def drive(duration: float) -> float:
    end = time.perf_counter() + duration
    return sum(await asyncio.gather(*(loop(end) for _ in range(concurrency)))) / duration


async def main() -> None:
    await drive(1)
    print(await drive(seconds))


asyncio.run(main())
