"""Requests of the host that the service has not answered yet."""

import asyncio
import base64
import itertools
import threading
from dataclasses import dataclass
from typing import Any

from .messages import Message


class ServiceError(Exception):
    """An error of the service. `name` is the name of its class there."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass
class FutureAnswer:
    id: int
    future: asyncio.Future[Any]


class EventAnswer:
    """An answer that a thread waits for."""

    def __init__(self, answer_id: int) -> None:
        self.id = answer_id
        self._event = threading.Event()
        self._reply: Message = {}

    def resolve(self, reply: Message) -> None:
        self._reply = reply
        self._event.set()

    def wait(self) -> Any:
        self._event.wait()
        return value_of(self._reply)


def value_of(reply: Message) -> Any:
    error = reply.get("error")
    if error:
        raise ServiceError(error["name"], error["message"])
    return base64.b64decode(reply["bytes"]) if "bytes" in reply else reply.get("value")


class Pending:
    """Answers by request id, for the event loop and for threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ids = itertools.count(1)
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._events: dict[int, EventAnswer] = {}

    def create_future(self) -> FutureAnswer:
        answer = FutureAnswer(next(self._ids), self._loop.create_future())
        self._futures[answer.id] = answer.future
        return answer

    def create_event(self) -> EventAnswer:
        answer = EventAnswer(next(self._ids))
        self._events[answer.id] = answer
        return answer

    def discard(self, request_id: int) -> None:
        self._futures.pop(request_id, None)
        self._events.pop(request_id, None)

    def resolve_event(self, message: Message) -> bool:
        """Called by the I/O thread. Returns whether a thread waited for the message."""
        if message["type"] != "reply":
            return False
        answer = self._events.pop(message["id"], None)
        if answer is None:
            return False
        answer.resolve(message)
        return True

    def resolve_future(self, message: Message) -> bool:
        """Called in the event loop. Returns whether the message is a reply."""
        if message["type"] != "reply":
            return False
        future = self._futures.pop(message["id"], None)
        if future is None or future.done():
            return True
        try:
            future.set_result(value_of(message))
        except ServiceError as error:
            future.set_exception(error)
        return True
