"""The encryption handlers of a project."""

import json
import pathlib
import sys
from typing import Any

import pytest
from langgraph_sdk import Encryption, EncryptionContext
from langgraph_sdk.encryption.types import DecryptResult

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from threadmill_host.encryption import ProjectEncryption

SEEN: list[tuple[Any, ...]] = []


def project(*, is_selective: bool = False, keeps_keys: bool = True) -> ProjectEncryption:
    encryption = Encryption()
    SEEN.clear()

    @encryption.encrypt.json
    async def encrypt_json(ctx: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
        SEEN.append((ctx.model, ctx.field, dict(ctx.metadata), sorted(data)))
        if not keeps_keys:
            return {"all": json.dumps(data)}
        chosen = {"secret"} if is_selective else set(data) - {"owner"}
        return {key: f"enc:{json.dumps(value)}" if key in chosen else value for key, value in data.items()}

    @encryption.decrypt.json
    async def decrypt_json(ctx: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
        return {
            key: json.loads(value[4:]) if isinstance(value, str) and value.startswith("enc:") else value
            for key, value in data.items()
        }

    @encryption.encrypt.blob
    async def encrypt_blob(ctx: EncryptionContext, blob: bytes) -> bytes:
        return blob[::-1]

    @encryption.decrypt.blob
    async def decrypt_blob(ctx: EncryptionContext, blob: bytes) -> DecryptResult[bytes]:
        SEEN.append(("decrypted", ctx.model, ctx.field, dict(ctx.metadata)))
        return DecryptResult(blob[::-1], replacement=blob)

    return ProjectEncryption(encryption)


async def stored(
    given: ProjectEncryption, value: Any, field: str = "values", format: str = "json", text: str | None = None
) -> str:
    item = {"model": "thread", "field": field, "format": format, "text": json.dumps(value) if text is None else text}
    (result,) = await given.encrypt([item], {"tenant": "acme"})
    return str(result["text"])


async def opened(given: ProjectEncryption, text: str, field: str = "values") -> Any:
    (result,) = await given.decrypt([{"field": field, "text": text}])
    assert result["context"] == {"tenant": "acme"}
    return json.loads(result["text"])


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": {"c": [1, {"d": "é\ud800"}]}, "owner": "ada"},
        {"__encryption_context__": 1, "___encryption_context__": 2},
        [1, "two"],
        "text",
        {"big": 2**80, "small": 1e-7},
    ],
)
async def test_values_are_read_as_they_were_written(value: Any) -> None:
    for given in (project(), project(is_selective=True)):
        text = await stored(given, value)
        assert text.startswith("\t") and await opened(given, text) == value


async def test_keys_stay_and_the_context_is_stored() -> None:
    given = project()
    kept = json.loads(await stored(given, {"owner": "ada", "secret": "x", "graph_id": "g"}, "metadata"))
    assert kept["owner"] == "ada" and kept["graph_id"] == "g" and kept["secret"] == 'enc:"x"'
    assert SEEN == [("thread", "metadata", {"tenant": "acme"}, ["owner", "secret"])]
    assert json.loads(await stored(given, {"graph_id": "g"}))["graph_id"] == 'enc:"g"'


async def test_handlers_see_no_keys_that_stay_readable() -> None:
    encryption = Encryption()

    @encryption.encrypt.json
    async def encrypt_json(_: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
        return {key: f"enc:{json.dumps(value)}" for key, value in data.items()}

    @encryption.decrypt.json
    async def decrypt_json(_: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
        return {key: json.loads(value.split("enc:")[1]) for key, value in data.items()}

    value = {"graph_id": "g", "secret": "x", "created_by": "ada"}
    text = await stored(ProjectEncryption(encryption), value, "metadata")
    assert list(json.loads(text))[:3] == list(value) and '"graph_id":"g"' in text
    assert await opened(ProjectEncryption(encryption), text, "metadata") == value


async def test_metadata_of_the_service_needs_no_handler() -> None:
    assert await stored(project(), {"created_by": "system"}, "metadata") == '{"created_by": "system"}' and SEEN == []


async def test_handlers_are_applied_within_values_that_they_leave_unchanged() -> None:
    value = {"messages": [{"secret": "x", "role": "user"}], "secret": {"secret": 1}}
    text = await stored(project(is_selective=True), value)
    assert json.loads(text)["messages"] == [{"secret": 'enc:"x"', "role": "user"}]
    assert await opened(project(is_selective=True), text) == value


async def test_blobs() -> None:
    given = project()
    text = await stored(given, None, "data", "blob", '{"x":"é"}')
    assert text.startswith("\x01") and "x" not in text.partition(".")[2]
    assert await opened(given, text, "data") == {"x": "é"} and SEEN == [
        ("decrypted", "thread", "data", {"tenant": "acme"})
    ]


async def test_a_value_that_fails_does_not_affect_others() -> None:
    item = {"model": "thread", "field": "values", "format": "json", "text": '{"a": 1}'}
    results = await project().encrypt([item, {**item, "text": "{"}], {})
    assert "text" in results[0] and results[1]["error"]["name"] == "JSONDecodeError"


async def test_handlers_must_keep_the_keys() -> None:
    item = {"model": "thread", "field": "values", "format": "json", "text": '{"a": 1}'}
    (result,) = await project(keeps_keys=False).encrypt([item], {})
    assert "keys" in result["error"]["message"]


async def test_the_context_of_a_request() -> None:
    encryption = Encryption()

    @encryption.encrypt.blob
    async def encrypt_blob(ctx: EncryptionContext, blob: bytes) -> bytes:
        return blob

    with pytest.raises(ValueError, match="together"):
        ProjectEncryption(encryption)

    @encryption.decrypt.blob
    async def decrypt_blob(ctx: EncryptionContext, blob: bytes) -> bytes:
        return blob

    assert await ProjectEncryption(encryption).context_of({"identity": "ada"}, {"a": 1}) == {"a": 1}

    @encryption.context
    async def context(user: Any, ctx: EncryptionContext) -> dict[str, Any]:
        assert ctx.model is None and ctx.field is None and user.is_authenticated
        return {**ctx.metadata, "user": user.identity, "plan": user.plan}

    given = ProjectEncryption(encryption)
    assert given.handlers() == ["blob", "context"]
    assert await given.context_of({"identity": "ada", "plan": "x"}, {"a": 1}) == {"a": 1, "user": "ada", "plan": "x"}


def test_the_export_must_be_an_encryption_object() -> None:
    with pytest.raises(ValueError, match="must be an Encryption object"):
        ProjectEncryption({})
    with pytest.raises(ValueError, match="registers no handlers"):
        ProjectEncryption(Encryption())
