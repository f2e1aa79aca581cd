"""The authentication and authorization handlers of the project (`auth.path` of langgraph.json)."""

import asyncio
import dataclasses
import inspect
import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from langgraph_sdk import Auth

from .auth_request import AuthRequest, argument_for
from .messages import Message
from .users import User
from .wire import to_wire

# Longer identities do not fit in a Postgres index.
MAX_IDENTITY_LENGTH = 500

# Headers that describe the body or the connection, which the service sets.
_OWN_HEADERS = re.compile(r"content-.*|transfer-encoding|connection|keep-alive|upgrade|trailer|date")

Handler = Callable[..., Any]


class ProjectAuth:
    """Answers the queries of the service. The answers are those of the JavaScript host: see inside/auth-handlers.ts."""

    def __init__(self, exported: Any) -> None:
        """Raises ValueError unless the export is an Auth with an authenticate handler."""
        if not isinstance(exported, Auth):
            raise ValueError("the export specified in auth.path is not an Auth object of langgraph_sdk")
        # The class has no public access to its handlers.
        authenticate = exported._authenticate_handler
        if authenticate is None:
            raise ValueError(
                "the Auth object specified in auth.path has no authenticate handler: add one with the decorator @auth.authenticate"
            )
        self._authenticate: Handler = authenticate
        self._parameters = _parameters(authenticate)
        self._handlers: dict[str, Handler] = {
            _event(resource, action): handlers[-1] for (resource, action), handlers in exported._handlers.items()
        }
        if exported._global_handlers:
            self._handlers["*"] = exported._global_handlers[-1]
        # The start of each synchronous call, which executes in a thread.
        self._calls: dict[object, float] = {}

    async def answer(self, query: Message) -> Any:
        """Raises Exception when a handler fails or returns an invalid value."""
        if query["kind"] == "auth_handlers":
            return list(self._handlers)
        try:
            return await (self._identify(query) if query["kind"] == "authenticate" else self._authorize(query))
        except Exception as error:
            refusal = _refusal_of(error)
            if refusal is None:
                raise
            return refusal

    def oldest_call_ms(self) -> int:
        """Returns how long the oldest synchronous call has been executing."""
        return round((time.monotonic() - min(self._calls.values())) * 1000) if self._calls else 0

    async def _identify(self, query: Message) -> Message:
        request = AuthRequest(query)
        returned = await self._call(
            self._authenticate, {name: argument_for(name, request) for name in self._parameters}
        )
        if not returned:
            return _refuse(401, "Unauthorized")
        user = _user_of(returned)
        return {"user": to_wire(user)} if user["is_authenticated"] else _refuse(401, "Unauthorized")

    async def _authorize(self, query: Message) -> Message:
        """Calls at most one handler: that of the event, else of the resource, else of the action, else of all events."""
        event = query["event"]
        resource, action = event.split(":")
        names = (event, resource, f"*:{action}", "*")
        handler = next((self._handlers[name] for name in names if name in self._handlers), None)
        if handler is None:
            return {"value": query["value"]}
        user = User(orjson.loads(query["user"]))
        value = orjson.loads(query["value"])
        # The type of the SDK is a tuple.
        if resource == "store" and isinstance(value.get("namespace"), list):
            value["namespace"] = tuple(value["namespace"])
        context = Auth.types.AuthContext(permissions=user.permissions, user=user, resource=resource, action=action)
        returned = await self._call(handler, {"ctx": context, "value": value})
        if returned is False:
            return _refuse(403, "Forbidden")
        answer = {"value": to_wire(value)}
        return answer if returned is None or returned is True else {**answer, "filter": _filter_of(returned)}

    async def _call(self, handler: Handler, arguments: dict[str, Any]) -> Any:
        """Synchronous handlers run in a thread."""
        if inspect.iscoroutinefunction(handler):
            return await handler(**arguments)
        call = object()

        def execute() -> Any:
            self._calls[call] = time.monotonic()
            try:
                return handler(**arguments)
            finally:
                self._calls.pop(call, None)

        returned = await asyncio.to_thread(execute)
        return await returned if inspect.isawaitable(returned) else returned


def _event(resource: str, action: str) -> str:
    return resource if action == "*" else f"{resource}:{action}"


def _parameters(authenticate: Handler) -> list[str]:
    """Returns the names of the parameters. Raises ValueError when one is unknown and has no default."""
    names = []
    for name, parameter in inspect.signature(authenticate).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if name in AuthRequest.ARGUMENTS and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            names.append(name)
        elif parameter.default is inspect.Parameter.empty:
            known = ", ".join(AuthRequest.ARGUMENTS)
            reason = ": requests are authenticated before their body is read" if name == "body" else ""
            raise ValueError(
                f"the authenticate handler of auth.path has an unknown parameter {name!r}{reason}; "
                f"the known parameters are {known}"
            )
    return names


def _user_of(returned: Any) -> Message:
    given = {"identity": returned} if isinstance(returned, str) else _fields_of(returned)
    identity = given.get("identity")
    if not isinstance(identity, str) or not 0 < len(identity) <= MAX_IDENTITY_LENGTH:
        raise ValueError(f"authenticate must return the identity as a string of 1 to {MAX_IDENTITY_LENGTH} characters")
    permissions: Any = given.get("permissions", [])
    is_list = isinstance(permissions, (list, tuple, set, frozenset))
    if not is_list or not all(isinstance(permission, str) for permission in permissions):
        raise ValueError("authenticate must return the permissions as a list of strings")
    return {
        **given,
        "identity": identity,
        "permissions": list(permissions),
        "is_authenticated": bool(given.get("is_authenticated", True)),
        "display_name": str(given.get("display_name", identity)),
    }


def _fields_of(returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        return {str(name): value for name, value in returned.items()}
    if hasattr(returned, "model_dump"):
        fields = dict(returned.model_dump())
    elif dataclasses.is_dataclass(returned) and not isinstance(returned, type):
        fields = {field.name: getattr(returned, field.name) for field in dataclasses.fields(returned)}
    else:
        fields = {name: value for name, value in getattr(returned, "__dict__", {}).items() if not name.startswith("_")}
    # They may be properties.
    for name in ("identity", "permissions", "is_authenticated", "display_name"):
        if name not in fields and hasattr(returned, name):
            fields[name] = getattr(returned, name)
    return fields


def _filter_of(returned: Any) -> Message:
    """Returns the filter in the service's form. Raises ValueError when it contains an unsupported value."""
    if not isinstance(returned, Mapping):
        raise _invalid_filter("a filter", returned)
    parts: list[Message] = []
    for key, expected in returned.items():
        if key in ("$and", "$or"):
            if not isinstance(expected, (list, tuple)):
                raise _invalid_filter(key, expected)
            inner = [_filter_of(part) for part in expected]
            parts.append({"any": inner} if key == "$or" else {"all": inner})
        elif not isinstance(key, str) or key.startswith("$"):
            raise _invalid_filter("an operator", key)
        else:
            parts.append({"all": [{"contains": {key: value}} for value in _conditions_of(expected)]})
    return {"all": parts}


def _conditions_of(expected: Any) -> list[Any]:
    """Returns the values that the metadata must contain under the key of a condition."""
    if _is_scalar(expected):
        return [expected]
    if not isinstance(expected, Mapping) or not expected:
        raise _invalid_filter("a value", expected)
    values = []
    for operator, value in expected.items():
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        if operator == "$eq" and _is_scalar(value):
            values.append(value)
        elif operator == "$contains" and items and all(_is_scalar(item) for item in items):
            values.append(items)
        else:
            raise _invalid_filter(operator, value)
    return values


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _invalid_filter(name: Any, value: Any) -> ValueError:
    return ValueError(
        f"the handler returned an invalid filter ({name}: {value!r}): return True, False, None, or a dict with strings, "
        "numbers, booleans, None, $eq, $contains, $or and $and"
    )


def _refuse(status: int, message: str, headers: Mapping[str, str] | None = None) -> Message:
    return {"refused": {"status": status, "message": message, "headers": dict(headers or {})}}


def _refusal_of(error: Exception) -> Message | None:
    """Returns None unless the error is an HTTPException, of the SDK or a web framework, with an error status."""
    if not any(kind.__name__ == "HTTPException" for kind in type(error).__mro__):
        return None
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 400 <= status <= 599:
        return None
    headers: Mapping[str, Any] = getattr(error, "headers", None) or {}
    kept = {
        str(name).lower(): str(value)
        for name, value in headers.items()
        if not _OWN_HEADERS.fullmatch(str(name).lower())
    }
    return _refuse(int(status), str(getattr(error, "detail", error)), kept)
