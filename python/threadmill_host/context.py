"""The run or request that the current code belongs to. asyncio tasks and LangChain's threads inherit it."""

from contextvars import ContextVar
from dataclasses import dataclass

from .connection import ServiceConnection
from .messages import RunKey


@dataclass(frozen=True)
class CurrentRun:
    key: RunKey
    connection: ServiceConnection


CURRENT_RUN: ContextVar[CurrentRun | None] = ContextVar("threadmill_run", default=None)

# The request to the HTTP app: its id.
CURRENT_REQUEST: ContextVar[int | None] = ContextVar("threadmill_request", default=None)
