"""Imports modules of the project under names that are the same in every host and after every start.

State may hold objects of the project's classes. LangGraph stores the names of their modules, and imports them again.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
import traceback
import types
import zlib
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from .messages import Message

FALLBACK_PACKAGE = "threadmill_graphs"
# What a project consists of besides graphs.
MODULE_FIELDS = ("embed", "auth", "app", "encryption")
MAX_TRACEBACK_LINES = 30
MAX_NAMES = 20


class GraphImportError(Exception):
    """A graph cannot be loaded. The message is shown to the user."""

    def __init__(self, message: str, traceback: str | None = None) -> None:
        super().__init__(message)
        self.traceback = traceback


class _FileFinder(MetaPathFinder):
    """Finds the modules of graph files by their names, before the regular finders."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == FALLBACK_PACKAGE:
            return importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        file = self.files.get(fullname)
        return importlib.util.spec_from_file_location(fullname, file) if file else None


class Importer:
    """Imports the project's modules."""

    def __init__(self, setup: Message) -> None:
        self._project_dir = os.path.realpath(setup["project_dir"])
        self._finder = _FileFinder()
        sys.meta_path.insert(0, self._finder)
        modules = [*setup["graphs"], *(setup.get(field) or {} for field in MODULE_FIELDS)]
        files = [Path(os.path.realpath(module["file"])) for module in modules if module.get("file")]
        folders = [*(setup.get("sys_path") or []), self._project_dir]
        for file in files:
            folders.append(str(_package_root(file)))
        # The project's folders come before site-packages.
        sys.path[:0] = list(dict.fromkeys(folder for folder in folders if folder not in sys.path))
        self._names = {str(file): self._name_of(file) for file in files}
        for file_name, name in self._names.items():
            self._finder.files[name] = file_name

    def load_export(self, graph: Message) -> tuple[Any, str]:
        """Returns the exported value and the name of its module for messages.

        Raises GraphImportError.
        """
        name = graph["export_name"]
        if graph.get("file"):
            file = os.path.realpath(graph["file"])
            where = self._relative(file)
            if not os.path.isfile(file):
                raise GraphImportError(f"./{where} does not exist")
            if file not in self._names:
                self._names[file] = self._name_of(Path(file))
                self._finder.files[self._names[file]] = file
            module = self._import(self._names[file], where)
        else:
            where = graph["module"]
            module = self._import_named(where)
        found = vars(module).get(name, _MISSING)
        if found is _MISSING:
            found = getattr(module, name, _MISSING)
        if found is _MISSING:
            raise GraphImportError(f'{where} has no "{name}"; it has {_public_names(module)}')
        return found, where

    def _import_named(self, name: str) -> types.ModuleType:
        try:
            return self._import(name, name)
        except GraphImportError as failure:
            cause = failure.__cause__
            # The module itself or one of its packages does not exist.
            if isinstance(cause, ModuleNotFoundError) and f"{name}.".startswith(f"{cause.name}."):
                reason = f"There is no module {name} in the project or {self._environment()}"
                raise GraphImportError(reason) from cause
            raise

    def _import(self, name: str, where: str) -> types.ModuleType:
        try:
            return importlib.import_module(name)
        except BaseException as error:
            raise GraphImportError(self._reason_of(error, where), format_traceback(error)) from error

    def _reason_of(self, error: BaseException, where: str) -> str:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        file, line = self._position(error, where)
        reason = (
            f"{type(error).__name__}: {message} ({file}, line {line})"
            if line
            else (f"{type(error).__name__}: {message} ({file})")
        )
        if isinstance(error, ModuleNotFoundError) and error.name:
            reason += f"; {error.name.split('.')[0]} is not installed in {self._environment()}"
        return reason

    def _position(self, error: BaseException, where: str) -> tuple[str, int | None]:
        """Returns the innermost position in the project."""
        if isinstance(error, SyntaxError) and error.filename:
            return self._relative(error.filename), error.lineno
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if self._is_of_project(frame.filename):
                return self._relative(frame.filename), frame.lineno
        return where, None

    def _is_of_project(self, file: str) -> bool:
        is_inside = os.path.realpath(file).startswith(self._project_dir + os.sep)
        return is_inside and f"{os.sep}site-packages{os.sep}" not in file

    def _relative(self, file: str) -> str:
        real = os.path.realpath(file)
        return (
            os.path.relpath(real, self._project_dir) if real.startswith(self._project_dir) else os.path.basename(real)
        )

    def _environment(self) -> str:
        prefix = os.path.abspath(sys.prefix)
        inside = prefix.startswith(self._project_dir + os.sep)
        return os.path.relpath(prefix, self._project_dir) if inside else prefix

    def _name_of(self, file: Path) -> str:
        root = _package_root(file)
        project = Path(self._project_dir)
        base = project if root == file.parent and file.is_relative_to(project) else root
        parts = file.relative_to(base).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        name = ".".join(parts)
        loaded = sys.modules.get(name.split(".")[0])
        is_free = loaded is None or _is_file_of(loaded, file, len(parts))
        if parts and all(part.isidentifier() for part in parts) and is_free:
            return name
        plain = re.sub(r"\W", "_", "_".join(parts)) or "graph"
        fallback = f"{FALLBACK_PACKAGE}.{plain}"
        if fallback in self._finder.files and self._finder.files[fallback] != str(file):
            fallback += f"_{zlib.crc32(str(file).encode()):08x}"
        self._finder.files[fallback] = str(file)
        return fallback


_MISSING = object()


def _package_root(file: Path) -> Path:
    """Returns the first folder above the file that is not a package."""
    folder = file.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def _is_file_of(module: types.ModuleType, file: Path, depth: int) -> bool:
    """Whether a loaded module with the name of the file's outermost package belongs to the project."""
    origin = getattr(module, "__file__", None)
    return origin is None or Path(os.path.realpath(origin)).is_relative_to(file.parents[depth - 1])


def _public_names(module: types.ModuleType) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    ]
    own = [name for name in names if getattr(vars(module)[name], "__module__", module.__name__) == module.__name__]
    others = [name for name in names if name not in own]
    return ", ".join([*own, *others][:MAX_NAMES]) or "nothing"


def format_traceback(error: BaseException) -> str:
    """Returns the traceback without the frames of importlib and the host, at most 30 lines."""
    own = os.path.dirname(__file__)
    formatted = traceback.TracebackException.from_exception(error)
    seen: traceback.TracebackException | None = formatted
    while seen is not None:
        kept = [
            frame for frame in seen.stack if "importlib" not in frame.filename and not frame.filename.startswith(own)
        ]
        seen.stack = traceback.StackSummary.from_list(kept)
        seen = seen.__cause__ or seen.__context__
    lines = "".join(formatted.format()).rstrip().split("\n")
    if len(lines) > MAX_TRACEBACK_LINES:
        lines = [*lines[:5], "...", *lines[-(MAX_TRACEBACK_LINES - 6) :]]
    return "\n".join(lines)
