import { OngoingRequests, type VaultContext } from "../../src/access/context.ts";
import type { AuthenticateRequest } from "../../src/access/contract/flows.ts";
import { parseEncryptionKey } from "../../src/access/encryption/encryption-key.ts";
import { KeyRing } from "../../src/access/encryption/key-ring.ts";
import type { Seal } from "../../src/access/encryption/seal.ts";
import type { CallbackParameters } from "../../src/access/oauth/flow-callback.ts";
import type { Flows } from "../../src/access/oauth/flows.ts";
import { sealClientSecret } from "../../src/access/oauth/provider-secret.ts";
import { insertProvider } from "../../src/access/storage/providers.ts";
import type { ProviderRow, TokenRow } from "../../src/access/storage/schema.ts";
import { listTokenEvents } from "../../src/access/storage/token-events.ts";
import { listTokens, updateToken } from "../../src/access/storage/tokens.ts";
import { createVault, type Vault } from "../../src/access/vault.ts";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import type { Caller } from "../../src/platform/contract/caller.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { systemClock } from "../../src/platform/lib/clock.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createSafeFetch } from "../../src/platform/lib/safe-fetch/safe-fetch.ts";
import type { TestDatabase } from "./databases.ts";
import { TEST_ENCRYPTION_KEY } from "./encryption.ts";
import { authorizeInBrowser, type OAuthServer, type TestClient } from "./oauth-server.ts";
import { openOn } from "./storage.ts";

/** Our own address in these tests; nobody listens there. */
export const BASE_URL = "http://threadmill.localhost:2024";

/** Clients of the authorization server, and of as many providers. */
export const CLIENTS = {
  basic: {
    client_id: "basic",
    client_secret: "a-secret-for-basic",
    token_endpoint_auth_method: "client_secret_basic",
  },
  post: { client_id: "post", client_secret: "a-secret-for-post", token_endpoint_auth_method: "client_secret_post" },
  open: { client_id: "public", token_endpoint_auth_method: "none" },
  withoutPkce: {
    client_id: "without-pkce",
    client_secret: "a-secret-without-pkce",
    token_endpoint_auth_method: "client_secret_post",
  },
} as const satisfies Record<string, TestClient>;

export const callbackUrlOf = (provider_id: string) => `${BASE_URL}/v2/auth/callback/${provider_id}`;

/** What a browser brings to a callback. */
export function callbackParametersOf(back: URL): CallbackParameters {
  const provider_id = decodeURIComponent(back.pathname.split("/").at(-1) ?? "");
  const { code, state, iss, error, error_description } = Object.fromEntries(back.searchParams);
  return { provider_id, code, state, iss, error, error_description };
}

export const TENANT = "00000000-0000-4000-8000-00000000000a";

export const callerOf = (user_id: string, scopes: Caller["scopes"] = ["tokens"], tenant_id = TENANT): Caller => ({
  tenant_id,
  user_id,
  scopes,
});

/** A process of the service, as far as the vault goes: several may share a database. */
export class TestVault {
  readonly context: VaultContext;
  readonly rules: Vault;
  readonly flows: Flows;
  readonly database: Database;

  private constructor(context: VaultContext) {
    this.context = context;
    this.database = context.database;
    this.rules = createVault(context);
    this.flows = this.rules.flows;
  }

  static async on(at: TestDatabase, settings: Partial<VaultContext["settings"]> = {}): Promise<TestVault> {
    const database = openOn(at);
    await migrate(database, MIGRATIONS.agents);
    const rules = { allow_loopback: true };
    return new TestVault({
      database,
      seal: testSeal,
      fetch: createSafeFetch(rules, { timeout_ms: 20_000, max_bytes: 1_000_000 }),
      fetch_rules: rules,
      clock: systemClock,
      log: createLog(process.env.TEST_LOG_LEVEL ?? "silent"),
      settings: {
        flow_ttl_ms: 600_000,
        refresh_skew_ms: 60_000,
        provider_timeout_ms: 10_000,
        token_event_retention_ms: 86_400_000,
        poll_ms: 50,
        ...settings,
      },
      ongoing: new OngoingRequests(),
    });
  }

  /** A provider row for a client of a server. */
  async provider(server: OAuthServer, client: TestClient, changes: Partial<ProviderRow> = {}): Promise<ProviderRow> {
    const id = newId();
    const tenant_id = changes.tenant_id ?? TENANT;
    const { client_id, client_secret, token_endpoint_auth_method } = client;
    const row = await this.database.write((tx) =>
      insertProvider(tx, {
        id,
        tenant_id,
        provider_id: client_id,
        name: client_id,
        client_id,
        client_secret: client_secret ? sealClientSecret(testSeal, { tenant_id, id }, client_secret) : null,
        auth_url: `${server.url}/auth`,
        token_url: `${server.url}/token`,
        revocation_url: `${server.url}/token/revocation`,
        issuer: server.url,
        resource: null,
        uses_pkce: 1,
        code_challenge_method: "S256",
        provider_type: null,
        mcp_server_url: null,
        token_endpoint_auth_method,
        is_dynamic_client: 0,
        authorization_params: "{}",
        allowed_redirect_uris: "[]",
        default_redirect_uri: null,
        ...changes,
      }),
    );
    return row as ProviderRow;
  }

  authenticate(caller: Caller, provider: string, body: Partial<AuthenticateRequest> = {}) {
    return this.flows.authenticate(
      caller,
      {
        provider,
        scopes: ["read"],
        user_id: undefined,
        ls_user_id: undefined,
        agent_id: undefined,
        use_agent_builder_public_oauth: false,
        force_new: false,
        token_id: undefined,
        is_default: true,
        ...body,
      },
      BASE_URL,
    );
  }

  /** The whole way of a user to the provider and back. */
  async connect(caller: Caller, provider: string, body: Partial<AuthenticateRequest> = {}): Promise<void> {
    const { url } = await this.authenticate(caller, provider, body);
    const end = await this.flows.handleCallback(
      callbackParametersOf(await authorizeInBrowser(url ?? "", { account: caller.user_id })),
    );
    if (end.status !== "connected") throw new Error(`${caller.user_id} was not connected: ${end.reason}`);
  }

  /** Their tokens, the default first. */
  tokens({ tenant_id, user_id }: Caller, provider_id: string): Promise<TokenRow[]> {
    return listTokens(this.database.read, { tenant_id, user_id, provider_id });
  }

  /** Makes all of a user's tokens at a provider run out now. */
  async expireTokens(caller: Caller, provider_id: string): Promise<void> {
    const tokens = await this.tokens(caller, provider_id);
    const { database } = this;
    for (const { token_id } of tokens)
      await database.write((tx) => updateToken(tx, token_id, { expires_at: systemClock.now() - 1 }));
  }

  events({ tenant_id, user_id }: Caller) {
    return listTokenEvents(this.database.read, { tenant_id, user_id }, 50);
  }

  async close(): Promise<void> {
    await this.flows.stop();
    await this.database.close();
  }
}

/** The services of tests have the same key on Postgres, so that several can share a database. */
const KEY = parseEncryptionKey(TEST_ENCRYPTION_KEY, "the tests");
export const testSeal: Seal = new KeyRing([KEY], undefined, createLog("silent"));
