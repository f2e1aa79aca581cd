import type { Role } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import type { BackgroundService } from "../platform/lib/background-service.ts";
import { systemClock } from "../platform/lib/clock.ts";
import type { VaultContext } from "./context.ts";
import { listEndedKeys } from "./storage/api-keys.ts";
import { listMembershipsOf } from "./storage/workspaces.ts";

interface KeyGrant {
  key_id: string;
}

/** Grant of a JWT: membership in a workspace until the JWT expires. */
interface MemberGrant {
  tenant_id: string;
  user_id: string;
  role: Role;
  expires_at: number;
}

/** What a caller's access depends on: an API key or a workspace membership. */
export type Grant = KeyGrant | MemberGrant;

type Listener = (error: ApiError) => void;

interface WatchedGrant<G extends Grant = Grant> {
  grant: G;
  listeners: Set<Listener>;
}

/** Polling is required: `threadmill keys revoke` sends no notification, and a Postgres notification can be lost. */
const CHECK_INTERVAL_MS = 500;

/**
 * Ends open responses when their grant ends: the key is revoked, the user is removed or is no longer an admin, or the JWT expires.
 * A check runs at most one query for keys and one for members, for any number of open responses.
 */
export class GrantWatch implements BackgroundService {
  readonly #database: VaultContext["database"];
  readonly #log: VaultContext["log"];
  readonly #watched = new Map<string, WatchedGrant>();
  #timer: NodeJS.Timeout | undefined;
  #unlisten: () => void = () => undefined;
  #checking: Promise<void> | undefined;
  #isCheckRequested = false;

  constructor({ database, log }: Pick<VaultContext, "database" | "log">) {
    this.#database = database;
    this.#log = log;
  }

  start(): void {
    this.#unlisten = this.#database.hints.listen("access", () => this.#check());
    this.#timer = setInterval(() => {
      // Separate from the check, so that the grants of expired JWTs end even if the database is unavailable.
      this.#endExpired();
      this.#check();
    }, CHECK_INTERVAL_MS).unref();
  }

  async stop(): Promise<void> {
    this.#unlisten();
    clearInterval(this.#timer);
    await this.#checking;
  }

  /** Calls `listener` once when the grant ends. Returns a function that unsubscribes. */
  watch(grant: Grant, listener: Listener): () => void {
    const id = JSON.stringify(grant);
    const watched = this.#watched.get(id) ?? { grant, listeners: new Set() };
    this.#watched.set(id, watched);
    watched.listeners.add(listener);
    return () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size === 0 && this.#watched.get(id) === watched) this.#watched.delete(id);
    };
  }

  /** Runs one check at a time. A notification during a check triggers another check. */
  #check(): void {
    this.#isCheckRequested = this.#watched.size > 0;
    this.#checking ??= this.#checkWhileRequested()
      .catch((error) =>
        this.#log.warn({ error }, "failed to check whether the callers of open streams still have access"),
      )
      .finally(() => {
        this.#checking = undefined;
      });
  }

  async #checkWhileRequested(): Promise<void> {
    while (this.#isCheckRequested) {
      this.#isCheckRequested = false;
      const watched = [...this.#watched.values()];
      await this.#endRevokedKeys(watched.filter(isOfKey));
      await this.#endRemovedMembers(watched.filter(isOfMember));
    }
  }

  #endExpired(): void {
    const now = systemClock.now();
    for (const watched of [...this.#watched.values()].filter(isOfMember))
      if (watched.grant.expires_at <= now) this.#end(watched, "The token has expired.");
  }

  async #endRevokedKeys(watched: readonly WatchedGrant<KeyGrant>[]): Promise<void> {
    if (watched.length === 0) return;
    const key_ids = watched.map(({ grant }) => grant.key_id);
    const ended = new Set(await listEndedKeys(this.#database.read, key_ids));
    for (const entry of watched) if (ended.has(entry.grant.key_id)) this.#end(entry, "The API key was revoked.");
  }

  async #endRemovedMembers(watched: readonly WatchedGrant<MemberGrant>[]): Promise<void> {
    if (watched.length === 0) return;
    const user_ids = new Set(watched.map(({ grant }) => grant.user_id));
    const rows = await listMembershipsOf(this.#database.read, [...user_ids]);
    const roles = new Map(rows.map(({ tenant_id, user_id, role }) => [`${tenant_id} ${user_id}`, role]));
    for (const entry of watched) {
      const { tenant_id, user_id, role } = entry.grant;
      const current = roles.get(`${tenant_id} ${user_id}`);
      if (current === undefined) this.#end(entry, "The user is no longer a member of the workspace.");
      else if (role === "admin" && current !== "admin")
        this.#end(entry, "The user is no longer an admin of the workspace.");
    }
  }

  #end(watched: WatchedGrant, reason: string): void {
    const { grant, listeners } = watched;
    const id = JSON.stringify(grant);
    // A new entry with the same id may have been added since the check began.
    if (this.#watched.get(id) === watched) this.#watched.delete(id);
    const error = new ApiError("access_ended", { reason });
    for (const listener of [...listeners]) listener(error);
    listeners.clear();
  }
}

const isOfKey = (watched: WatchedGrant): watched is WatchedGrant<KeyGrant> => "key_id" in watched.grant;
const isOfMember = (watched: WatchedGrant): watched is WatchedGrant<MemberGrant> => !isOfKey(watched);
