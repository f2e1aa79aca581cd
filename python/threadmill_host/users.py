"""The authenticated user of a run or a query."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any


class User(Mapping[str, Any]):
    """A user with the interface of langgraph_sdk's `BaseUser`: attributes and items."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)

    @property
    def identity(self) -> str:
        return str(self._fields["identity"])

    @property
    def is_authenticated(self) -> bool:
        return bool(self._fields.get("is_authenticated", True))

    @property
    def display_name(self) -> str:
        return str(self._fields.get("display_name") or self.identity)

    @property
    def permissions(self) -> list[str]:
        return list(self._fields.get("permissions") or [])

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"User(identity={self._fields.get('identity')!r})"


def with_user(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the config with the user as an object."""
    user = (config.get("configurable") or {}).get("langgraph_auth_user")
    if not isinstance(user, dict) or "identity" not in user:
        return dict(config)
    return {**config, "configurable": {**config["configurable"], "langgraph_auth_user": User(user)}}


def user_of(config: Mapping[str, Any]) -> User | None:
    user = (config.get("configurable") or {}).get("langgraph_auth_user")
    return user if isinstance(user, User) else None


def credentials_of(user: User) -> Any:
    """Returns the `auth` of an ASGI scope, whose `scopes` are the permissions of the user."""
    try:
        from starlette.authentication import AuthCredentials  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return SimpleNamespace(scopes=user.permissions)
    return AuthCredentials(user.permissions)
