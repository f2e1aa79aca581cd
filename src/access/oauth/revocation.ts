import * as oauth from "oauth4webapi";
import type { VaultContext } from "../context.ts";
import type { ProviderRow } from "../storage/schema.ts";
import type { RevokeTokens } from "../tokens/after-deletion.ts";
import type { TokenSecret } from "../tokens/token-secret.ts";
import { type ProviderAccess, partiesOf, requestOptions } from "./client.ts";
import { failureOf } from "./failure.ts";
import { openClientSecret } from "./provider-secret.ts";
import { quirksOf } from "./quirks.ts";

/** Requests to one provider at a time: a user who goes takes along a handful of tokens, a provider all there are. */
const AT_A_TIME = 5;

/** What {@link revokeQuietly} does, for any number of tokens. */
export const revokeTokens =
  (context: Pick<VaultContext, "log"> & ProviderAccess): RevokeTokens =>
  async (provider, secrets) => {
    for (let i = 0; i < secrets.length; i += AT_A_TIME) {
      await Promise.all(secrets.slice(i, i + AT_A_TIME).map((secret) => revokeQuietly(context, provider, secret)));
    }
  };

/**
 * Tells a provider that a token is not used any more, as far as it takes note of that. Ends within the provider's time limit and
 * never fails: what went wrong goes to the log, without the token.
 */
export async function revokeQuietly(
  context: Pick<VaultContext, "log"> & ProviderAccess,
  provider: ProviderRow,
  secret: TokenSecret,
): Promise<void> {
  try {
    await revoke(context, provider, secret);
  } catch (error) {
    context.log.warn({ provider_id: provider.provider_id, ...failureOf(error) }, "a token could not be revoked");
  }
}

async function revoke(access: ProviderAccess, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  if (provider.revocation_url !== null) return revokeByRfc7009(access, provider, secret);
  const { revocation } = quirksOf(provider);
  if (revocation === "slack") return revokeAtSlack(access, provider, secret);
  if (revocation === "github") return revokeAtGithub(access, provider, secret);
}

/** The refresh token first: with it most servers take back all that came of the grant, but some only what they are told. */
async function revokeByRfc7009(access: ProviderAccess, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  const { as, client, authentication } = await partiesOf(access, provider);
  const { access_token, refresh_token } = secret;
  const send = async (token: string, token_type_hint: string) => {
    const options = { ...requestOptions(access), additionalParameters: { token_type_hint } };
    await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, authentication, token, options));
  };
  const sent = await Promise.allSettled([
    ...(refresh_token === undefined ? [] : [send(refresh_token, "refresh_token")]),
    send(access_token, "access_token"),
  ]);
  const failed = sent.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}

/** The method stands beside the one of the token endpoint. */
async function revokeAtSlack(access: ProviderAccess, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  const { signal } = requestOptions(access);
  const headers = { authorization: `Bearer ${secret.access_token}` };
  const url = new URL("auth.revoke", provider.token_url);
  await requireOk(await access.fetch(url, { method: "POST", headers, signal, redirect: "manual" }));
}

/** This token alone: the app's grant may have others, of another workspace. */
async function revokeAtGithub(access: ProviderAccess, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  const { signal } = requestOptions(access);
  const { client_id } = provider;
  const credentials = Buffer.from(`${client_id}:${openClientSecret(access.seal, provider) ?? ""}`).toString("base64");
  const url = `https://api.github.com/applications/${encodeURIComponent(client_id)}/token`;
  const headers = { authorization: `Basic ${credentials}`, accept: "application/vnd.github+json" };
  const body = JSON.stringify({ access_token: secret.access_token });
  await requireOk(await access.fetch(url, { method: "DELETE", headers, body, signal, redirect: "manual" }));
}

async function requireOk(response: Response): Promise<void> {
  if (response.ok) return;
  throw Object.assign(new Error("The provider did not take the token back."), { cause: response });
}
