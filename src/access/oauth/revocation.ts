import * as oauth from "oauth4webapi";
import type { VaultContext } from "../context.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { openToken, type TokenSecret } from "../tokens/token-secret.ts";
import { oauthConfigOf, type ProviderContext, requestOptions } from "./oauth-client.ts";
import { describeFailure } from "./provider-errors.ts";
import { profileOf } from "./provider-profiles.ts";
import { openClientSecret } from "./provider-secret.ts";

type RevocationContext = Pick<VaultContext, "log" | "ongoing"> & ProviderContext;

/** Limits the load on a provider: deleting its configuration revokes all of its tokens at once. */
const MAX_CONCURRENT_REQUESTS = 5;

/** Starts the revocation without waiting for it. Local tokens are deleted regardless of the result. Failures are logged without tokens. */
export function revokeInBackground(
  context: RevocationContext,
  provider: ProviderRow | undefined,
  tokens: readonly TokenRow[],
): void {
  if (!provider || tokens.length === 0) return;
  const { provider_id } = provider;
  const secrets = tokens.flatMap((token) => {
    try {
      const secret = openToken(context.seal, token);
      return secret.access_token === "" ? [] : [secret];
    } catch {
      context.log.warn(
        { provider_id, token_id: token.token_id },
        "OAuth token revocation failed because the token cannot be decrypted",
      );
      return [];
    }
  });
  void context.ongoing.add(revokeAll(context, provider, secrets));
}

async function revokeAll(context: RevocationContext, provider: ProviderRow, secrets: readonly TokenSecret[]) {
  for (let i = 0; i < secrets.length; i += MAX_CONCURRENT_REQUESTS) {
    const batch = secrets.slice(i, i + MAX_CONCURRENT_REQUESTS);
    await Promise.all(batch.map((secret) => revokeGrant(context, provider, secret)));
  }
}

/** Never rejects: failures are logged without the token. */
export async function revokeGrant(
  context: RevocationContext,
  provider: ProviderRow,
  secret: TokenSecret,
): Promise<void> {
  const { tenant_id: workspace_id, provider_id } = provider;
  try {
    if (await revoke(context, provider, secret)) context.log.info({ workspace_id, provider_id }, "OAuth token revoked");
  } catch (error) {
    context.log.warn({ workspace_id, provider_id, ...describeFailure(error) }, "OAuth token revocation failed");
  }
}

/** @returns false when the provider has no revocation endpoint */
async function revoke(context: ProviderContext, provider: ProviderRow, secret: TokenSecret): Promise<boolean> {
  const { revocation } = profileOf(provider);
  if (provider.revocation_url !== null) await revokeByRfc7009(context, provider, secret);
  else if (revocation === "slack") await revokeAtSlack(context, provider, secret);
  else if (revocation === "github") await revokeAtGithub(context, provider, secret);
  else return false;
  return true;
}

/** Revokes both tokens, because some servers revoke only the given token instead of the whole grant. */
async function revokeByRfc7009(context: ProviderContext, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  const { as, client, authentication } = oauthConfigOf(context, provider);
  const { access_token, refresh_token } = secret;
  const send = async (token: string, token_type_hint: string) => {
    const options = { ...requestOptions(context), additionalParameters: { token_type_hint } };
    await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, authentication, token, options));
  };
  const results = await Promise.allSettled([
    ...(refresh_token === undefined ? [] : [send(refresh_token, "refresh_token")]),
    send(access_token, "access_token"),
  ]);
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}

/** Slack: the URL of `auth.revoke` is relative to the URL of the token endpoint. */
async function revokeAtSlack(context: ProviderContext, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  const { signal } = requestOptions(context);
  const headers = { authorization: `Bearer ${secret.access_token}` };
  const url = new URL("auth.revoke", provider.token_url);
  await requireOk(await context.fetch(url, { method: "POST", headers, signal, redirect: "manual" }));
}

/** GitHub: deletes only this token, because the app's grant may include tokens of other workspaces. */
async function revokeAtGithub(context: ProviderContext, provider: ProviderRow, secret: TokenSecret): Promise<void> {
  const { signal } = requestOptions(context);
  const { client_id } = provider;
  const credentials = Buffer.from(`${client_id}:${openClientSecret(context.seal, provider) ?? ""}`).toString("base64");
  const url = `https://api.github.com/applications/${encodeURIComponent(client_id)}/token`;
  const headers = { authorization: `Basic ${credentials}`, accept: "application/vnd.github+json" };
  const body = JSON.stringify({ access_token: secret.access_token });
  await requireOk(await context.fetch(url, { method: "DELETE", headers, body, signal, redirect: "manual" }));
}

async function requireOk(response: Response): Promise<void> {
  if (response.ok) return;
  throw Object.assign(new Error(`The provider rejected the revocation with status ${response.status}.`), {
    cause: response,
  });
}
