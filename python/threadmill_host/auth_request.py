"""The request that an authentication handler gets."""

from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from .messages import Message

Headers = list[tuple[bytes, bytes]]


class AuthRequest:
    """A request without its body."""

    ARGUMENTS: ClassVar = ("request", "path", "method", "path_params", "query_params", "headers", "authorization")

    def __init__(self, query: Message) -> None:
        self.method: str = query["method"]
        self._url: str = query["url"]
        self.path_params: dict[str, str] = query.get("path_params") or {}
        self.raw_headers = to_raw_headers(query["headers"])

    @cached_property
    def scope(self) -> Message:
        return {
            **http_scope(self._url, self.method, self.raw_headers),
            "path_params": self.path_params,
        }

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def query_params(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self._url).query, keep_blank_values=True))

    @property
    def authorization(self) -> str | None:
        found = dict(self.raw_headers).get(b"authorization")
        return None if found is None else found.decode("latin-1")


class PlainRequest:
    """Stands in for Starlette's Request in a project without Starlette."""

    def __init__(self, request: AuthRequest) -> None:
        self.scope = request.scope
        self.method = request.method
        self.url = request._url
        self.path_params = request.path_params
        self.query_params = request.query_params
        self.headers = _CaseInsensitive(
            {name.decode("latin-1"): value.decode("latin-1") for name, value in request.raw_headers}
        )

    @property
    def cookies(self) -> dict[str, str]:
        try:
            return {name: morsel.value for name, morsel in SimpleCookie(self.headers.get("cookie", "")).items()}
        except CookieError:
            return {}


class _CaseInsensitive(dict[str, str]):
    """Headers, whose keys are in lower case."""

    def __getitem__(self, key: str) -> str:
        return super().__getitem__(key.lower())

    def __contains__(self, key: object) -> bool:
        return super().__contains__(str(key).lower())

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key.lower(), default)


def argument_for(name: str, request: AuthRequest) -> Any:
    """Returns the value of a parameter of the authenticate handler."""
    if name == "headers":
        return dict(request.raw_headers)
    return _request_object(request) if name == "request" else getattr(request, name)


def _request_object(request: AuthRequest) -> Any:
    try:
        from starlette.requests import Request  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return PlainRequest(request)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    return Request(request.scope, receive)


def to_raw_headers(headers: list[list[str]]) -> Headers:
    # Names are in lower case. Values have only characters of ISO 8859-1.
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]


def http_scope(url: str, method: str, headers: Headers) -> Message:
    """Returns the ASGI scope of a request."""
    parts = urlsplit(url)
    default_port = 443 if parts.scheme == "https" else 80
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": parts.scheme,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode("latin-1", "replace"),
        "query_string": parts.query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": (parts.hostname or "localhost", parts.port or default_port),
    }
