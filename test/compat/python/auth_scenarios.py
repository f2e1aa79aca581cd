"""Uses the official Python client of the Auth Service, one scenario after the other.

The arguments are the service's URL, that of an authorization server, and keys of ada, of bob and of a service; each scenario runs
with the service's URL alone, and with `/api-host` behind it.

Prints a line of JSON for each: {"scenario": ..., "ok": true}, or with "ok": false and the "reason".
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable

import httpx
from checks import contains, same, unique
from langchain_auth import AuthResult, Client, OAuthProvider, in_langgraph_context

URL, OAUTH, ADA, BOB, SERVICE = sys.argv[1:]


class World:
    """The same service for several callers."""

    def __init__(self, url: str, provider_id: str):
        self.provider_id = provider_id
        self.ada = Client(api_key=ADA, api_url=url)
        self.bob = Client(api_key=BOB, api_url=url)
        self.service = Client(api_key=SERVICE, api_url=f"{url}/")

    async def ask(self, client: Client, user_id: str, **more: str) -> AuthResult:
        return await client.authenticate(self.provider_id, ["openid"], user_id, **more)

    async def provider(self, provider_id: str) -> OAuthProvider:
        return await self.ada.create_oauth_provider(
            provider_id,
            "Acme",
            "python-client",
            "a secret",
            f"{OAUTH}/auth",
            f"{OAUTH}/token",
            uses_pkce=True,
            code_challenge_method="S256",
        )


async def refused(call: Awaitable, text: str, kind: type[Exception] = Exception) -> None:
    try:
        await call
    except kind as error:
        contains(error, text)
    else:
        raise AssertionError(f"expected {kind.__name__}, but it was answered")


async def walk(url: str | None, account: str) -> None:
    """Goes to the authorization server and back, as a browser does."""
    async with httpx.AsyncClient() as browser:
        at = httpx.URL(url or "")
        for _ in range(20):
            if at.path.startswith("/interaction/"):
                at = at.copy_merge_params({"account": account})
            answer = await browser.get(at)
            if "location" not in answer.headers:
                same((answer.status_code, "Connected" in answer.text), (200, True))
                return
            at = at.join(answer.headers["location"])
    raise AssertionError(f"{url} leads in circles")


async def account_of(token: str | None) -> str:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{OAUTH}/me", headers={"authorization": f"Bearer {token}"})
        return answer.json()["sub"]


async def providers(world: World) -> None:
    """providers are created, read, listed, changed and deleted"""
    name = f"another-{unique()}"
    made = await world.provider(name)
    same((made.provider_id, made.name, made.client_id), (name, "Acme", "python-client"))
    same((made.uses_pkce, made.code_challenge_method, made.provider_type), (True, "S256", None))
    same(vars(await world.bob.get_oauth_provider(name)), vars(made))
    same([one.id for one in await world.ada.list_oauth_providers() if one.provider_id == name], [made.id])
    changed = await world.ada.update_oauth_provider(name, name="Renamed", client_secret="another secret")
    same((changed.name, changed.id, changed.token_url), ("Renamed", made.id, made.token_url))
    await refused(world.provider(name), f"HTTP 409: {{\"detail\":\"OAuth provider '{name}' already exists\"}}")
    contains((await world.ada.delete_oauth_provider(name)).message, name)
    await refused(world.ada.get_oauth_provider(name), f"HTTP 404: {{\"detail\":\"OAuth provider '{name}' not found\"}}")


async def flow(world: World) -> None:
    """a user is sent to the provider, is waited for, and has a token from then on"""
    same(in_langgraph_context(), False)
    asked = await world.ask(world.ada, "ada")
    same((asked.status, asked.token, bool(asked.url), bool(asked.auth_id)), ("pending", None, True, True))
    waiting = asyncio.create_task(world.ada.wait_for_completion(asked.auth_id or ""))
    await walk(asked.url, "ada")
    waited = await waiting
    same((waited.status, await account_of(waited.token)), ("completed", "ada"))
    given = await world.ask(world.ada, "ada")
    same((given.status, given.token, given.url), ("completed", waited.token, None))


async def waits(world: World) -> None:
    """a wait ends with a TimeoutError, and at once for what never was or is somebody else's"""
    asked = await world.ask(world.bob, "bob")
    auth_id = asked.auth_id or ""
    await refused(world.bob.wait_for_completion(auth_id, timeout=1), "timed out after 1 seconds", TimeoutError)
    for client, unknown in ((world.ada, auth_id), (world.bob, unique())):
        await refused(client.wait_for_completion(unknown), "request not found or has expired")


async def whose(world: World) -> None:
    """a service names the user; from anybody else such names are ignored"""
    same((await world.ask(world.ada, "bob", ls_user_id="bob")).status, "completed")
    asked = await world.ask(world.service, "bob", ls_user_id="bob")
    same(asked.status, "pending")
    await walk(asked.url, "bob")
    for client in (world.service, world.bob):
        same(await account_of((await world.ask(client, "bob", ls_user_id="bob")).token), "bob")


async def agents(world: World) -> None:
    """an agent gets the user's token, and one that asks for more is sent to the provider"""
    agent_id = unique()
    same((await world.ask(world.ada, "ada", agent_id=agent_id)).status, "completed")
    more = await world.ada.authenticate(world.provider_id, ["openid", "read"], "ada", agent_id=agent_id)
    same(more.status, "pending")
    await walk(more.url, "ada")
    both = await world.ada.authenticate(world.provider_id, ["openid", "read"], "ada", agent_id=agent_id)
    same(await account_of(both.token), "ada")


async def revocation(world: World) -> None:
    """tokens are there until their user revokes them, which may be done twice and touches nobody else's"""
    same((await world.ada.check_token_exists(world.provider_id)).has_token, True)
    for _ in range(2):
        revoked = await world.ada.revoke_tokens(world.provider_id)
        same((revoked.provider_id, bool(revoked.message)), (world.provider_id, True))
    same((await world.ada.check_token_exists(world.provider_id)).has_token, False)
    same((await world.bob.check_token_exists(world.provider_id)).has_token, True)
    same((await world.ask(world.ada, "ada")).status, "pending")


async def refusals(world: World) -> None:
    """what is refused is an exception with the status and the reason"""
    await refused(world.ada.authenticate("nowhere", [], "ada"), "HTTP 404: {\"detail\":\"OAuth provider 'nowhere' not found\"}")
    stranger = Client(api_key="not a key", api_url=world.ada.api_url)
    await refused(stranger.list_oauth_providers(), "HTTP 401")
    await refused(world.ada.authenticate("", 7, "ada"), "HTTP 422")  # type: ignore[arg-type]


SCENARIOS = [providers, flow, waits, whose, agents, revocation, refusals]


async def run(mount: str, provider_id: str) -> None:
    world = World(f"{URL}{mount}", provider_id)
    await world.provider(provider_id)
    for scenario in SCENARIOS:
        line: dict = {"scenario": f"{mount or '/'}: {scenario.__doc__}", "ok": True}
        try:
            await asyncio.wait_for(scenario(world), timeout=60)
        except BaseException as error:
            line |= {"ok": False, "reason": "".join(traceback.format_exception(error))[-3000:]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(run("", "one"))
    asyncio.run(run("/api-host", "two"))
