"""Prints the paths of the fields of langgraph.json that the official command line knows, as a JSON list. `*` is any name."""

import json
import typing

from langgraph_cli.schemas import Config


def records_in(kind: typing.Any) -> list[type]:
    """The typed dictionaries among the alternatives of a type."""
    if typing.is_typeddict(kind):
        return [kind]
    return [record for part in typing.get_args(kind) for record in records_in(part)]


def paths_in(record: type, prefix: str = "") -> list[str]:
    paths = []
    for name, kind in typing.get_type_hints(record).items():
        inner = [path for part in records_in(kind) for path in paths_in(part, f"{prefix}{name}.")]
        paths += inner or [prefix + name]
    return paths


print(json.dumps(sorted(set(paths_in(Config)))))
