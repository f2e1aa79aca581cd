"""Encrypts and decrypts stored values with the handlers of the project (`encryption.path`).

A stored value contains its encryption context, which is passed to the handler that decrypts it. An encrypted JSON object is stored as a tab
and a JSON object with the same keys: JSON that the service stores never begins with white space. Other encrypted texts are
stored as U+0001 and the base64 of the encrypted bytes.
"""

import asyncio
import base64
import copy
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .messages import Message
from .users import User

JSON_MARK = "\t"
BLOB_MARK = "\x01"
_CONTEXT = "__encryption_context__"
_ESCAPED = re.compile(rf"_*{_CONTEXT}")
# The only key of a value that is not an object.
_ROOT = "value"

_SYSTEM_METADATA = (
    "assistant_id checkpoint_id created_by cron_id graph_id parents run_attempt run_id source step task_id thread_id"
)
_RUN_OPTIONS = (
    "after_seconds durability if_not_exists interrupt_after interrupt_before is_custom_user keep_paused "
    "multitask_strategy on_completion on_disconnect stream_mode stream_protocol stream_resumable strict_resume subgraphs"
)
# Keys at the top level of a field that stay readable: the service filters by them, or they contain no data of users.
_READABLE: Mapping[str, frozenset[str]] = {
    "metadata": frozenset(_SYSTEM_METADATA.split()),
    "kwargs": frozenset(_RUN_OPTIONS.split()),
    "payload": frozenset(_RUN_OPTIONS.split()),
}

Handler = Callable[[Any, Any], Awaitable[Any]]
Json = dict[str, Any]


class ProjectEncryption:
    """The object that `encryption.path` names."""

    def __init__(self, exported: Any) -> None:
        sdk = _sdk()
        if not isinstance(exported, sdk.Encryption):
            raise ValueError("The export must be an Encryption object of langgraph_sdk.")
        self._sdk = sdk
        self._json: tuple[Handler | None, Handler | None] = (
            exported.get_json_encryptor(),
            exported.get_json_decryptor(),
        )
        self._blob: tuple[Handler | None, Handler | None] = (exported._blob_encryptor, exported._blob_decryptor)
        self._context: Handler | None = exported._context_handler
        for kind, pair in (("json", self._json), ("blob", self._blob)):
            if (pair[0] is None) != (pair[1] is None):
                raise ValueError(f"The module must register encrypt.{kind} and decrypt.{kind} together.")
        if self._json[0] is None and self._blob[0] is None:
            raise ValueError(
                "The module registers no handlers: register encrypt.json and decrypt.json, encrypt.blob and decrypt.blob, or all."
            )

    async def answer(self, query: Message) -> Any:
        match query["kind"]:
            case "encryption_handlers":
                return self.handlers()
            case "encryption_context":
                return _dump(await self.context_of(json.loads(query["user"]), json.loads(query["metadata"])))
            case "encrypt":
                return await self.encrypt(query["items"], json.loads(query["context"]))
            case _:
                results = await self.decrypt(query["items"])
                return [{**each, "context": _dump(each["context"])} if "context" in each else each for each in results]

    def handlers(self) -> list[str]:
        named = {"json": self._json[0], "blob": self._blob[0], "context": self._context}
        return [name for name, handler in named.items() if handler is not None]

    async def context_of(self, user: Json, metadata: Json) -> Json:
        """Returns the metadata of the encryption context of a request."""
        if self._context is None:
            return metadata
        context = await self._context(User(user), self._context_for({"metadata": metadata}))
        if not isinstance(context, dict):
            raise ValueError(f"The context handler must return a dict, but returned {type(context).__name__}.")
        return context

    async def encrypt(self, items: list[Message], metadata: Json) -> list[Message]:
        return await asyncio.gather(*(self._result(self._encrypt(item, metadata)) for item in items))

    async def decrypt(self, items: list[Message]) -> list[Message]:
        return await asyncio.gather(*(self._result(self._decrypt(item)) for item in items))

    async def _result(self, work: Awaitable[Message]) -> Message:
        """One value that fails does not affect the others."""
        try:
            return await work
        except Exception as error:
            return {"error": {"name": type(error).__name__, "message": str(error)}}

    async def _encrypt(self, item: Message, metadata: Json) -> Message:
        text = item["text"]
        own = {"model": item["model"], "field": item["field"], "metadata": metadata}
        context = self._context_for(own)
        if item["format"] == "blob":
            encrypt = self._blob[0]
            if encrypt is None:
                return {"text": text}
            blob = await encrypt(context, text.encode())
            if not isinstance(blob, bytes):
                raise TypeError(f"encrypt.blob must return bytes, but returned {type(blob).__name__}.")
            return {"text": f"{BLOB_MARK}{_base64(_dump(own).encode())}.{_base64(blob)}"}
        if self._json[0] is None:
            return {"text": text}
        value = json.loads(text)
        is_object = isinstance(value, dict)
        data = {_escape(key): inner for key, inner in value.items()} if is_object else {_ROOT: value}
        hidden = _without_readable(data, own, is_object)
        if not hidden:
            return {"text": text}
        encrypted = data | await self._apply(self._json[0], context, hidden)
        return {"text": JSON_MARK + _dump({**encrypted, _CONTEXT: {**own, "is_object": is_object}})}

    async def _decrypt(self, item: Message) -> Message:
        text = item["text"]
        if text.startswith(BLOB_MARK):
            head, _, body = text[1:].partition(".")
            own = json.loads(base64.b64decode(head))
            decrypt = self._required(self._blob[1], "blob")
            blob = self._plaintext(await decrypt(self._context_for(own), base64.b64decode(body)))
            return {"text": blob.decode(), "context": own["metadata"]}
        stored = json.loads(text)
        own = stored.pop(_CONTEXT)
        decrypt = self._required(self._json[1], "json")
        context = self._context_for(own)
        data = stored | await self._apply(decrypt, context, _without_readable(stored, own, own["is_object"]))
        value = {_unescape(key): inner for key, inner in data.items()} if own["is_object"] else data[_ROOT]
        return {"text": _dump(value), "context": own["metadata"]}

    async def _apply(self, handler: Handler, context: Any, data: Json) -> Json:
        """Calls the handler for an object, and for the objects within the values that it leaves unchanged."""
        # A copy, because a handler may change the object in place.
        changed = self._plaintext(await handler(context, copy.deepcopy(data)))
        if not isinstance(changed, dict) or changed.keys() != data.keys():
            raise ValueError("A JSON handler must return an object with the keys that it was given.")
        result: Json = {}
        for key, value in data.items():
            if changed[key] != value:
                result[key] = changed[key]
            else:
                result[key] = await self._apply_within(handler, context, value)
        return result

    async def _apply_within(self, handler: Handler, context: Any, value: Any) -> Any:
        if isinstance(value, dict) and value:
            return await self._apply(handler, context, value)
        if isinstance(value, list):
            return [await self._apply_within(handler, context, item) for item in value]
        return value

    def _context_for(self, own: Json) -> Any:
        return self._sdk.EncryptionContext(
            model=own.get("model"), field=own.get("field"), metadata=dict(own["metadata"])
        )

    def _plaintext(self, result: Any) -> Any:
        """Handlers may return a `DecryptResult`. Its replacement is not stored."""
        kind = getattr(self._sdk.Encryption.types, "DecryptResult", None)
        return result.plaintext if kind is not None and isinstance(result, kind) else result

    def _required(self, handler: Handler | None, kind: str) -> Handler:
        if handler is None:
            raise ValueError(f"The value is encrypted, but decrypt.{kind} is not registered.")
        return handler


def _without_readable(data: Json, own: Json, is_object: bool) -> Json:
    """Handlers see only the keys that they can change: a decryptor may fail for a value that is not encrypted."""
    readable = _READABLE.get(own["field"], frozenset()) if is_object else frozenset[str]()
    return {key: value for key, value in data.items() if key not in readable}


def _sdk() -> Any:
    """Imports the SDK only when it is needed: versions before 0.3 have no encryption."""
    try:
        import langgraph_sdk

        if hasattr(langgraph_sdk, "Encryption"):
            return langgraph_sdk
    except ImportError:
        pass
    raise ValueError("encryption.path needs a newer langgraph-sdk: its class Encryption does not exist.")


def _dump(value: Any) -> str:
    """ASCII, so that unpaired surrogates survive."""
    return json.dumps(value, separators=(",", ":"))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _escape(key: str) -> str:
    return f"_{key}" if _ESCAPED.fullmatch(key) else key


def _unescape(key: str) -> str:
    return key[1:] if _ESCAPED.fullmatch(key) else key
