import { type Caller, DEFAULT_SCOPES, DEFAULT_TENANT, SCOPES, type Scope } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import type { OnAccessEnd } from "../platform/http/route.ts";
import { isUuid } from "../platform/lib/ids.ts";
import type { Service } from "../platform/lib/service.ts";
import type { VaultContext } from "./context.ts";
import { type Grant, GrantWatch } from "./grant-watch.ts";
import { digestOf, isOfDigest, keyIdOf, NO_DIGEST } from "./keys/api-key-text.ts";
import type { OidcIssuer } from "./oidc-issuer.ts";
import { findApiKey, hasApiKeys, touchApiKey } from "./storage/api-keys.ts";
import type { ApiKeyRow, WorkspaceMemberRow } from "./storage/schema.ts";
import { findMember, findWorkspace, someMembershipsOf } from "./storage/workspaces.ts";

/** What a request shows of its caller. Absent and empty are the same. */
export interface Credentials {
  /** `X-Api-Key`. */
  api_key: string | undefined;
  /** `Authorization: Bearer`: a key or a JWT. Looked at when there is no `X-Api-Key`. */
  bearer: string | undefined;
  /** `X-Tenant-Id`: selects a workspace, and says nothing about who calls. */
  tenant_id: string | undefined;
}

/** A caller who was let in. */
export interface Admission {
  caller: Caller;
  onEnd: OnAccessEnd;
  /** Whether there are limits to what they use: for users whose key or JWT can be taken from them. */
  isLimited: boolean;
}

interface AccessOptions extends Pick<VaultContext, "database" | "log"> {
  /** Keys of the environment. */
  api_keys: readonly string[];
  issuer: OidcIssuer | undefined;
  /** Whether only this machine can reach the service. */
  is_loopback: boolean;
}

/** An open service and keys of the environment end with the process. */
export const forGood = (caller: Caller): Admission => ({
  caller,
  onEnd: () => () => undefined,
  isLimited: false,
});

const LOCAL = forGood({ tenant_id: DEFAULT_TENANT, user_id: "local", scopes: SCOPES });

/** When a key was last used is noted this often: a write for each request would double the work of many. */
const TOUCH_EVERY_MS = 60_000;

/**
 * Who calls. Nothing is remembered of a key or a member, so a revocation counts from the moment it is committed. That costs
 * a request 15 µs on SQLite, 6 µs of them the digests, and 0.2 ms on Postgres, most of it the way there and back (measured on
 * 2 busy cores, 1,000 keys).
 */
export class Access implements Service {
  readonly #database: AccessOptions["database"];
  readonly #log: AccessOptions["log"];
  readonly #issuer: OidcIssuer | undefined;
  /** Digests of the keys of the environment. */
  readonly #digests: readonly string[];
  readonly #touching = new Set<string>();
  readonly #grants: GrantWatch;
  /** False once anything was there that closes the service; that cannot be taken back. */
  #mayBeOpen: boolean;

  constructor({ database, log, api_keys, issuer, is_loopback }: AccessOptions) {
    this.#database = database;
    this.#log = log;
    this.#issuer = issuer;
    this.#grants = new GrantWatch({ database, log });
    this.#digests = api_keys.map(digestOf);
    this.#mayBeOpen = is_loopback && api_keys.length === 0 && issuer === undefined;
  }

  start(): void {
    this.#grants.start();
  }

  stop(): Promise<void> {
    return this.#grants.stop();
  }

  /**
   * @throws ApiError unauthorized; workspace_forbidden, workspace_needed or no_workspace when the caller is known, but not
   *   where they belong; unavailable when the OIDC issuer does not answer
   */
  async admit({ api_key, bearer, tenant_id }: Credentials): Promise<Admission> {
    if (await this.isOpen()) return LOCAL;
    const text = api_key || bearer;
    if (!text) throw new ApiError("unauthorized");
    if (this.#isOfEnvironment(text)) return forGood(await this.#administrator(tenant_id));
    const key = await this.#identify(text);
    if (key) return this.#until({ key_id: key.key_id }, ownerOf(key, tenant_id));
    const user = api_key ? undefined : await this.#issuer?.userOf(text);
    if (!user) throw new ApiError("unauthorized");
    const { user_id, expires_at } = user;
    const member = await this.#memberOf(user_id, tenant_id);
    const scopes = member.role === "admin" ? SCOPES : [...new Set([...DEFAULT_SCOPES, ...user.scopes])];
    const grant = { tenant_id: member.tenant_id, user_id, role: member.role, expires_at };
    return this.#until(grant, { tenant_id: member.tenant_id, user_id, scopes });
  }

  #until(grant: Grant, caller: Caller): Admission {
    return { caller, onEnd: (listener) => this.#grants.watch(grant, listener), isLimited: true };
  }

  /**
   * Whether anybody on this machine may do anything: no key has ever been there. Another process may make one at any moment, so
   * the database is asked each time (7 µs on SQLite); after that the service is closed for good, also when the key is revoked.
   */
  async isOpen(): Promise<boolean> {
    if (this.#mayBeOpen && (await hasApiKeys(this.#database.read))) this.#mayBeOpen = false;
    return this.#mayBeOpen;
  }

  /** Every key is compared, whether one before it matched or not. */
  #isOfEnvironment(text: string): boolean {
    return this.#digests.filter((digest) => isOfDigest(text, digest)).length > 0;
  }

  /** The key, unless it is unknown or revoked. */
  async #identify(text: string): Promise<ApiKeyRow | undefined> {
    const key_id = keyIdOf(text);
    const row = key_id === undefined ? undefined : await findApiKey(this.#database.read, key_id);
    if (!isOfDigest(text, row?.digest ?? NO_DIGEST) || !row || row.revoked_at !== null) return undefined;
    this.#touch(row);
    return row;
  }

  /** In the background: no request waits for it or fails with it. */
  #touch({ key_id, last_used_at }: ApiKeyRow): void {
    const is_noted = last_used_at !== null && Date.now() - last_used_at < TOUCH_EVERY_MS;
    if (is_noted || this.#touching.has(key_id)) return;
    this.#touching.add(key_id);
    this.#database
      .write((tx) => touchApiKey(tx, key_id, TOUCH_EVERY_MS))
      .catch((error: Error) => this.#log.warn({ key_id, error: error.message }, "the use of a key was not noted"))
      .finally(() => this.#touching.delete(key_id));
  }

  /** Keys of the environment open the default workspace, or any other that there is. */
  async #administrator(wanted: string | undefined): Promise<Caller> {
    const tenant_id = wanted ? idOfWorkspace(wanted) : DEFAULT_TENANT;
    if (tenant_id !== DEFAULT_TENANT && !(await findWorkspace(this.#database.read, tenant_id)))
      throw new ApiError("workspace_forbidden");
    return { tenant_id, user_id: "admin", scopes: SCOPES };
  }

  /** The user's membership in the workspace that is wanted, or in their only one. */
  async #memberOf(user_id: string, wanted: string | undefined): Promise<WorkspaceMemberRow> {
    const { read } = this.#database;
    if (wanted) {
      const member = await findMember(read, idOfWorkspace(wanted), user_id);
      if (!member) throw new ApiError("workspace_forbidden");
      return member;
    }
    const [first, second] = await someMembershipsOf(read, user_id);
    if (!first) throw new ApiError("no_workspace");
    if (second) throw new ApiError("workspace_needed");
    return first;
  }
}

/** A key is bound to its workspace. */
function ownerOf({ tenant_id, user_id, scopes }: ApiKeyRow, wanted: string | undefined): Caller {
  if (wanted && idOfWorkspace(wanted) !== tenant_id) throw new ApiError("workspace_forbidden");
  return { tenant_id, user_id, scopes: JSON.parse(scopes) as Scope[] };
}

function idOfWorkspace(text: string): string {
  if (!isUuid(text)) throw new ApiError("workspace_forbidden");
  return text.toLowerCase();
}
