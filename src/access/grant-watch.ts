import type { Role } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import { systemClock } from "../platform/lib/clock.ts";
import type { Service } from "../platform/lib/service.ts";
import type { VaultContext } from "./context.ts";
import { endedKeysAmong } from "./storage/api-keys.ts";
import { listMembershipsOf } from "./storage/workspaces.ts";

interface KeyGrant {
  key_id: string;
}

/** Of a JWT: membership of a workspace, until the token expires. */
interface MemberGrant {
  tenant_id: string;
  user_id: string;
  role: Role;
  /** In milliseconds since the epoch. */
  expires_at: number;
}

/** What lets a caller in, and may end while they are served. */
export type Grant = KeyGrant | MemberGrant;

type Listener = (error: ApiError) => void;

interface Held<G extends Grant = Grant> {
  grant: G;
  listeners: Set<Listener>;
}

/** `threadmill keys revoke` on SQLite notifies nobody, and a notification of Postgres can be lost. */
const CHECK_MS = 500;

/**
 * Ends what is open when the grant behind it ends: a key that is revoked, a member who is removed or is an admin no more, a JWT that
 * expires. However many streams are open, each check is at most one query for keys and one for members; without any it is none.
 */
export class GrantWatch implements Service {
  readonly #database: VaultContext["database"];
  readonly #log: VaultContext["log"];
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #unlisten: () => void = () => undefined;
  #checking: Promise<void> | undefined;
  #isToCheck = false;

  constructor({ database, log }: Pick<VaultContext, "database" | "log">) {
    this.#database = database;
    this.#log = log;
  }

  start(): void {
    this.#unlisten = this.#database.hints.listen("access", () => this.#check());
    this.#timer = setInterval(() => {
      // By itself, so that a database that does not answer keeps no token alive.
      this.#endExpired();
      this.#check();
    }, CHECK_MS).unref();
  }

  async stop(): Promise<void> {
    this.#unlisten();
    clearInterval(this.#timer);
    await this.#checking;
  }

  /** Calls `listener` once when the grant has ended, until the returned function is called. */
  watch(grant: Grant, listener: Listener): () => void {
    const id = JSON.stringify(grant);
    const held = this.#held.get(id) ?? { grant, listeners: new Set() };
    this.#held.set(id, held);
    held.listeners.add(listener);
    return () => {
      held.listeners.delete(listener);
      if (held.listeners.size === 0 && this.#held.get(id) === held) this.#held.delete(id);
    };
  }

  /** One check at a time, and another when there was a notification meanwhile. */
  #check(): void {
    this.#isToCheck = this.#held.size > 0;
    this.#checking ??= this.#checkWhileNeeded()
      .catch((error) => this.#log.warn({ error }, "the grants of open streams could not be checked; it is tried again"))
      .finally(() => {
        this.#checking = undefined;
      });
  }

  async #checkWhileNeeded(): Promise<void> {
    while (this.#isToCheck) {
      this.#isToCheck = false;
      const held = [...this.#held.values()];
      await this.#endRevoked(held.filter(isOfKey));
      await this.#endRemoved(held.filter(isOfMember));
    }
  }

  #endExpired(): void {
    const now = systemClock.now();
    for (const held of [...this.#held.values()].filter(isOfMember))
      if (held.grant.expires_at <= now) this.#end(held, "The token has expired.");
  }

  async #endRevoked(held: readonly Held<KeyGrant>[]): Promise<void> {
    if (held.length === 0) return;
    const key_ids = held.map(({ grant }) => grant.key_id);
    const ended = new Set(await endedKeysAmong(this.#database.read, key_ids));
    for (const one of held) if (ended.has(one.grant.key_id)) this.#end(one, "The API key was revoked.");
  }

  async #endRemoved(held: readonly Held<MemberGrant>[]): Promise<void> {
    if (held.length === 0) return;
    const user_ids = new Set(held.map(({ grant }) => grant.user_id));
    const rows = await listMembershipsOf(this.#database.read, [...user_ids]);
    const roles = new Map(rows.map(({ tenant_id, user_id, role }) => [`${tenant_id} ${user_id}`, role]));
    for (const one of held) {
      const { tenant_id, user_id, role } = one.grant;
      const now = roles.get(`${tenant_id} ${user_id}`);
      if (now === undefined) this.#end(one, "The user is no longer a member of the workspace.");
      else if (role === "admin" && now !== "admin") this.#end(one, "The user is no longer an admin of the workspace.");
    }
  }

  #end(held: Held, reason: string): void {
    const { grant, listeners } = held;
    const id = JSON.stringify(grant);
    // Another may have come in its place since the check began.
    if (this.#held.get(id) === held) this.#held.delete(id);
    const error = new ApiError("access_ended", { reason });
    for (const listener of [...listeners]) listener(error);
    listeners.clear();
  }
}

const isOfKey = (held: Held): held is Held<KeyGrant> => "key_id" in held.grant;
const isOfMember = (held: Held): held is Held<MemberGrant> => !isOfKey(held);
