"""Handlers in the form of the official documentation. The cipher is authenticated, and good enough for tests: it needs no packages."""

import asyncio
import hashlib
import hmac
import json
import os
from typing import Any

from langgraph_sdk import Encryption, EncryptionContext

encryption = Encryption()

SKIPPED = {"owner", "tenant"}
PREFIX = "encrypted:"


def _key_of(context: EncryptionContext) -> bytes:
    tenant = context.metadata.get("tenant", "nobody")
    if tenant == "unknown":
        raise LookupError(f"There is no key for the tenant {tenant}.")
    return hashlib.sha256(f"{os.environ.get('ENCRYPTION_TEST_KEY')} {tenant}".encode()).digest()


def _cipher(key: bytes, nonce: bytes, data: bytes) -> bytes:
    stream = hashlib.shake_256(key + nonce).digest(len(data))
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))


def seal(context: EncryptionContext, data: bytes) -> bytes:
    key, nonce = _key_of(context), os.urandom(16)
    body = nonce + _cipher(key, nonce, data)
    return hmac.digest(key, body, "sha256") + body


def unseal(context: EncryptionContext, data: bytes) -> bytes:
    key, tag, body = _key_of(context), data[:32], data[32:]
    if not hmac.compare_digest(tag, hmac.digest(key, body, "sha256")):
        raise PermissionError("The key is wrong, or the value was changed.")
    return _cipher(key, body[:16], body[16:])


@encryption.context
async def get_context(user: Any, context: EncryptionContext) -> dict[str, Any]:
    return {"user": user.identity, **context.metadata}


@encryption.encrypt.blob
async def encrypt_blob(context: EncryptionContext, blob: bytes) -> bytes:
    if b"unencryptable" in blob:
        raise OverflowError(f"Refused: {blob!r}")
    return seal(context, blob)


@encryption.decrypt.blob
async def decrypt_blob(context: EncryptionContext, blob: bytes) -> bytes:
    return unseal(context, blob)


@encryption.encrypt.json
async def encrypt_json(context: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
    if context.metadata.get("tenant") == "stuck":
        await asyncio.Event().wait()

    def value_of(key: str, value: Any) -> Any:
        if key in SKIPPED or value is None:
            return value
        return PREFIX + seal(context, json.dumps(value).encode()).hex()

    return {key: value_of(key, value) for key, value in data.items()}


@encryption.decrypt.json
async def decrypt_json(context: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
    def value_of(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(PREFIX):
            return json.loads(unseal(context, bytes.fromhex(value.removeprefix(PREFIX))))
        return value

    return {key: value_of(value) for key, value in data.items()}
