"""The routes that an app of Starlette or FastAPI declares, in the form of the service (AppRoutes in host-http.ts)."""

import re
from typing import Any

from .messages import Message

_PARAMETER = re.compile(r"\{[^}:]+(?::([^}]+))?\}")
# Other converters may match a slash.
_SEGMENT_CONVERTERS = (None, "str", "int", "float", "uuid")


def is_starlette(app: Any) -> bool:
    """Checks for attributes instead of the class, because the project may have any version of the package."""
    return all(hasattr(app, name) for name in ("routes", "router", "user_middleware")) and hasattr(
        app.router, "default"
    )


def routes_of(app: Any) -> list[Message] | None:
    """Returns None for an app that does not declare its routes."""
    if not is_starlette(app):
        return None
    middleware = [_route("ALL", "*", is_middleware=True)] if app.user_middleware else []
    return [*middleware, *_declared(app.routes)]


def _declared(routes: Any) -> list[Message]:
    found: list[Message] = []
    for route in routes:
        kind = _kind_of(route)
        if kind == "websocket":
            continue
        path = getattr(route, "path", None)
        if not isinstance(path, str):
            # For example `Host`: whether it matches depends on more than the path.
            found.append(_route("ALL", "*", is_middleware=True))
        elif kind == "mount" and path == "" and getattr(route, "routes", None):
            found += _declared(route.routes)
        elif kind == "mount":
            found += [_route("ALL", to_pattern(path) or "/"), _route("ALL", f"{to_pattern(path)}/*")]
        else:
            methods = getattr(route, "methods", None)
            found += [_route(method, to_pattern(path)) for method in sorted(methods or ["ALL"])]
    return found


def _kind_of(route: Any) -> str:
    names = {kind.__name__ for kind in type(route).__mro__}
    if "WebSocketRoute" in names:
        return "websocket"
    return "mount" if "Mount" in names else "route"


def _route(method: str, path: str, *, is_middleware: bool = False) -> Message:
    return {"method": method, "path": path, "is_middleware": is_middleware}


def to_pattern(path: str) -> str:
    """Returns the path in Hono's syntax. The pattern may match more requests; the app passes those back."""
    segments: list[str] = []
    for number, segment in enumerate(path.split("/")):
        parameters = list(_PARAMETER.finditer(segment))
        if any(parameter.group(1) not in _SEGMENT_CONVERTERS for parameter in parameters):
            return "/".join([*segments, "*"])
        # Characters that Hono would interpret.
        is_literal = not parameters and not re.search(r"[:*?{}]", segment)
        segments.append(segment if is_literal else f":p{number}")
    return "/".join(segments)
