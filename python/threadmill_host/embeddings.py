"""The embedding function of the project's store."""

import asyncio
import base64
import inspect
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from .importing import Importer
from .messages import Message


class Embeddings:
    """What `store.index.embed` names: a function of texts, or an object with the methods of LangChain's embeddings."""

    def __init__(self, exported: Any) -> None:
        methods = ("embed_documents", "embed_query")
        self._is_object = all(callable(getattr(exported, name, None)) for name in methods)
        if not self._is_object and (not callable(exported) or isinstance(exported, type)):
            raise ValueError(
                "The export must be a function that takes a list of texts, or an object with embed_documents and "
                "embed_query."
            )
        self._exported = exported

    async def embed(self, query: Message) -> str:
        """Returns the normalized vectors of the texts: 32-bit floats in their order, in base64."""
        texts, dims = query["texts"], query["dims"]
        vectors = await self._vectors(texts, query["is_query"])
        if not isinstance(vectors, Sequence) and hasattr(vectors, "tolist"):
            vectors = vectors.tolist()
        if not isinstance(vectors, Sequence) or len(vectors) != len(texts):
            raise ValueError(f"The embedding function must return a list with one vector for each text ({len(texts)}).")
        packed = array("f")
        for number, vector in enumerate(vectors):
            packed.extend(_normalized(number, vector, dims))
        return base64.b64encode(packed.tobytes()).decode()

    async def _vectors(self, texts: list[str], is_query: bool) -> Any:
        if not self._is_object:
            return await _call(self._exported, texts)
        asynchronous = getattr(self._exported, "aembed_query" if is_query else "aembed_documents", None)
        if is_query:
            embed_query = asynchronous or self._exported.embed_query
            return await asyncio.gather(*(_call(embed_query, text) for text in texts))
        return await _call(asynchronous or self._exported.embed_documents, texts)


def load_embeddings(setup: Message, importer: Importer) -> Embeddings:
    """Raises Exception when the project has no embedding function, or it fails to load."""
    module = setup.get("embed")
    if not module or "file" not in module:
        raise ValueError("langgraph.json has no store.index with a Python function.")
    exported, _ = importer.load_export(module)
    return Embeddings(exported)


async def _call(function: Callable[..., Any], argument: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    result = await asyncio.to_thread(function, argument)
    return await result if inspect.isawaitable(result) else result


def _normalized(number: int, vector: Any, dims: int) -> list[float]:
    values = vector.tolist() if hasattr(vector, "tolist") else vector
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != dims:
        raise ValueError(f"Vector {number} must be a list of {dims} numbers (store.index.dims).")
    length = math.hypot(*values)
    if not math.isfinite(length):
        raise ValueError(f"Vector {number} contains a value that is not a finite number.")
    return [value / length for value in values] if length else list(values)
