"""Access tokens of the run's user."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

# The key of `configurable` with the object that requests tokens. LangGraph passes it to every node, tool and subgraph.
# Keys that start with two underscores never reach metadata or events.
REQUEST_TOKEN_KEY = "__threadmill_request_token"


class RequestToken(Protocol):
    """Requests a token from the service: `{"token"}`, or `{"auth_url"}` at which the user can grant one."""

    async def request(self, fields: dict[str, Any]) -> dict[str, Any]: ...

    def request_sync(self, fields: dict[str, Any]) -> dict[str, Any]: ...


class TokenInterrupt(GraphInterrupt):
    """Interrupts the run until the user has granted access.

    `interrupt()` is unsuitable: it counts a node's interrupts and assigns resume values in order. Once the token
    exists, the resume value would go to the node's next interrupt.
    """

    def __init__(self, value: dict[str, Any]) -> None:
        super().__init__([Interrupt(value=value, id=token_interrupt_id(value["auth_url"]))])
        self.value = value


async def get_token(
    config: Mapping[str, Any] | None = None,
    *,
    provider: str,
    scopes: Sequence[str],
    agent_scoped: bool = True,
    token_id: str | None = None,
    message: str | None = None,
) -> str:
    """Returns an access token of the run's user.

    Without a token, the run is interrupted with the value `{message, auth_url, provider, scopes}`, and the user grants
    a token at `auth_url`. When the run is resumed, with any value, the node starts again from its beginning and
    requests the token again.

    Args:
        config: The config of the node or tool. Default: that of the current node.
        provider: The `provider_id` under which the provider is registered.
        scopes: Scopes that the token must have.
        agent_scoped: True: a token that is connected to this assistant takes precedence, and a newly granted token is
            connected to it. False: the user's default token is used.
        token_id: ID of a specific token of the user; no other token is returned.
        message: Message that asks the user to grant access.

    Raises:
        RuntimeError: outside of a run.
        ValueError: for invalid options.
        Exception: if the provider is unknown or cannot refresh the token.
    """
    request = _request_of(config)
    fields = _fields(provider, scopes, agent_scoped, token_id)
    return _token_of(await request.request(fields), provider, scopes, message)


def get_token_sync(
    config: Mapping[str, Any] | None = None,
    *,
    provider: str,
    scopes: Sequence[str],
    agent_scoped: bool = True,
    token_id: str | None = None,
    message: str | None = None,
) -> str:
    """Returns an access token of the run's user, for synchronous nodes and tools. See `get_token`."""
    request = _request_of(config)
    fields = _fields(provider, scopes, agent_scoped, token_id)
    return _token_of(request.request_sync(fields), provider, scopes, message)


def _request_of(config: Mapping[str, Any] | None) -> RequestToken:
    try:
        current: Mapping[str, Any] = get_config() if config is None else config
    except RuntimeError:
        current = {}
    request = (current.get("configurable") or {}).get(REQUEST_TOKEN_KEY)
    if request is None:
        raise RuntimeError("get_token works only in a Threadmill run. Pass the config that the node or tool received.")
    return request  # type: ignore[no-any-return]


def _fields(provider: str, scopes: Sequence[str], agent_scoped: bool, token_id: str | None) -> dict[str, Any]:
    is_list = not isinstance(scopes, str) and all(isinstance(scope, str) for scope in scopes)
    if not isinstance(provider, str) or not is_list:
        raise ValueError("get_token requires `provider` to be a string and `scopes` to be a list of strings.")
    fields = {"provider": provider, "scopes": list(scopes), "agent_scoped": agent_scoped}
    return fields if token_id is None else {**fields, "token_id": token_id}


def _token_of(answer: dict[str, Any], provider: str, scopes: Sequence[str], message: str | None) -> str:
    if "token" in answer:
        return str(answer["token"])
    raise TokenInterrupt(
        {
            "message": message or f"OAuth authentication required for provider '{provider}'.",
            "auth_url": answer["auth_url"],
            "provider": provider,
            "scopes": list(scopes),
        }
    )


def token_interrupt_id(auth_url: str) -> str:
    """Returns the id of a token interrupt, derived from its value.

    It has the format of LangGraph's ids, so that a resume value can name it. LangGraph itself never assigns this id,
    so it passes a resume value for this id to no interrupt.
    """
    return hashlib.sha256(f"an OAuth token granted at {auth_url}".encode()).hexdigest()[:32]


def is_token_interrupt(interrupt: Interrupt) -> bool:
    """Whether an interrupt requests a token. Such an interrupt needs a stored token; it ignores resume values."""
    value = interrupt.value
    auth_url = value.get("auth_url") if isinstance(value, dict) else None
    return isinstance(auth_url, str) and interrupt.id == token_interrupt_id(auth_url)
