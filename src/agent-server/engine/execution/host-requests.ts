import type { AuthUser, Caller } from "../../../platform/contract/caller.ts";
import type { Database, Tx } from "../../../platform/database/database.ts";
import { hideDriverMessage } from "../../../platform/database/database-errors.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { unlessAborted } from "../../../platform/lib/signal.ts";
import type { CheckpointWrite } from "../../graph-hosts/checkpoint-requests.ts";
import { FetchResponses, requestOf } from "../../graph-hosts/fetch-exchange.ts";
import type { HostRequest, RunKwargs, TokenAnswer, TokenRequest } from "../../graph-hosts/host.ts";
import { listAncestors } from "../../storage/checkpoints/ancestors.ts";
import { findCheckpoint, listCheckpoints } from "../../storage/checkpoints/checkpoints.ts";
import { insertCheckpoint, insertWrites } from "../../storage/checkpoints/inserts.ts";
import { holdsLease } from "../../storage/run-leases.ts";
import type { RunRow } from "../../storage/schema.ts";
import type { Store } from "../../store/store.ts";
import type { Journal } from "./journal.ts";
import { RunStore } from "./run-store.ts";

/** The user on whose behalf a run sends requests. Read from the run's record, never from data that the graph sends. */
interface RunUser {
  tenant_id: string;
  user_id: string;
  assistant_id: string;
  /** Scopes of the caller who created the run. */
  scopes: readonly string[];
  /** See {@link Caller}. */
  user: AuthUser | undefined;
}

function userOf({ tenant_id, assistant_id, kwargs }: RunRow): RunUser {
  const { config, is_custom_user } = JSON.parse(kwargs) as RunKwargs;
  const { user_id, langgraph_auth_permissions: permissions, langgraph_auth_user } = config.configurable ?? {};
  const owner = { tenant_id, assistant_id, user_id: String(user_id) };
  if (is_custom_user) return { ...owner, scopes: ["agents"], user: langgraph_auth_user as AuthUser };
  return { ...owner, scopes: Array.isArray(permissions) ? permissions.map(String) : [], user: undefined };
}

export interface HostRequestOptions extends TokenRequestOptions {
  store: Store;
  fetchAs: FetchAs;
}

/** Answers the requests of a run's graph and its checkpointer. Writes are refused without the lease; reads need no lease. */
export class HostRequests {
  readonly #run: RunRow;
  readonly #journal: Journal;
  readonly #options: HostRequestOptions;
  readonly #fetches = new FetchResponses();
  readonly #store: RunStore;

  constructor(run: RunRow, journal: Journal, options: HostRequestOptions) {
    this.#run = run;
    this.#journal = journal;
    this.#options = options;
    this.#store = new RunStore(run, options.store, journal);
  }

  async answer(request: HostRequest): Promise<unknown> {
    const { database } = this.#options;
    switch (request.op) {
      case "put":
      case "put_writes":
        return this.#journal.commit(this.#stepOf(request));
      case "get":
      case "list":
      case "ancestors":
        // A run must read its own writes, including writes that are not committed yet.
        await this.#journal.written();
        return readCheckpoints(database, request);
      case "token":
        return answerTokenRequest(this.#run, request, this.#options);
      case "store":
        return this.#store.answer(request.operations);
      case "fetch":
        await this.#store.flush();
        await refuseUnlessHeld(database, this.#run);
        return this.#fetches.start(request.id, (signal) =>
          this.#options.fetchAs(userOf(this.#run), requestOf(request, signal)),
        );
      case "fetch_read":
        return this.#fetches.read(request.id);
      case "fetch_cancel":
        return this.#fetches.cancel(request.id);
      case "delete_thread":
        throw new Error(
          "The checkpointer cannot delete threads: send DELETE /threads/{thread_id} to the server instead.",
        );
    }
  }

  /** Stores a write without a reply. An error takes effect when the run ends. */
  store(write: CheckpointWrite): void {
    this.#journal.store(this.#stepOf(write));
  }

  /** Adds to the journal the store writes that followed the last checkpoint write. */
  finish(): void {
    const staged = this.#store.takeStaged();
    if (staged) this.#journal.store(staged);
  }

  /** Aborts the open requests to this server when the run ends. */
  close(): void {
    this.#fetches.cancelAll();
  }

  /** Returns a step with the preceding store writes and a checkpoint write. */
  #stepOf(write: CheckpointWrite): (tx: Tx) => Promise<void> {
    const staged = this.#store.takeStaged();
    return async (tx) => {
      await staged?.(tx);
      await this.#insert(tx, write);
    };
  }

  #insert(tx: Tx, write: CheckpointWrite): Promise<void> {
    if (write.op === "put") return insertCheckpoint(tx, this.#run, write.checkpoint);
    return insertWrites(tx, this.#run, write, write.writes);
  }
}

/**
 * Returns a token of a run's user, or the URL where the user grants one.
 *
 * @throws ApiError if neither a token nor a URL can be returned
 */
export type FindToken = (user: RunUser, request: TokenRequest) => Promise<TokenAnswer>;

/** Exceeds a token refresh (THREADMILL_OAUTH_TIMEOUT, 10 s by default) and the wait for a refresh by another caller (5 s more). */
const TIMEOUT_MS = 30_000;

interface TokenRequestOptions {
  database: Database;
  log: Log;
  findToken: FindToken;
}

/**
 * Answers a graph's token request. The lease is checked before the request, so that an ended run starts no OAuth flow, and after it, so
 * that an ended run receives no token. The engine does not store the token. When the run is stopped, the graph stops waiting for the
 * answer, but the request continues.
 */
export async function answerTokenRequest(
  run: RunRow,
  request: TokenRequest,
  options: TokenRequestOptions,
  timeout_ms = TIMEOUT_MS,
): Promise<TokenAnswer> {
  await refuseUnlessHeld(options.database, run);
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(new Error(`The request for an OAuth token timed out after ${timeout_ms} ms. Try again.`)),
    timeout_ms,
  );
  try {
    const answer = await unlessAborted(timeout.signal, find(run, request, options));
    await refuseUnlessHeld(options.database, run);
    return answer;
  } finally {
    clearTimeout(timer);
  }
}

async function find(run: RunRow, request: TokenRequest, options: TokenRequestOptions): Promise<TokenAnswer> {
  try {
    return await options.findToken(userOf(run), request);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The error becomes the run's output, so it must not contain internal details.
    options.log.error({ error, run_id: run.run_id }, "token request failed");
    throw new ApiError("internal");
  }
}

async function refuseUnlessHeld({ read }: Database, run: RunRow): Promise<void> {
  if (!(await holdsLease(read, run)))
    throw new Error("The request was rejected: the run was stopped, or another process has taken over the run.");
}

/** Answers a request as if the user had sent it. */
export type FetchAs = (user: RunUser, request: Request) => Promise<Response>;

/**
 * Answers a read of a host's checkpointer, and refuses other requests.
 *
 * @throws DatabaseUnavailableError
 */
export async function readCheckpoints(database: Database, request: HostRequest): Promise<unknown> {
  try {
    switch (request.op) {
      case "get":
        return await findCheckpoint(database.read, request);
      case "list":
        if (request.thread_id === undefined)
          throw new Error("Listing checkpoints requires a thread_id: set configurable.thread_id in the config.");
        return await listCheckpoints(request.metadata ? database.search : database.read, request);
      case "ancestors":
        return await listAncestors(database.read, request);
      case "token":
        throw new Error(
          "OAuth tokens are available only during a run, not while the graph is being loaded or its state is being read.",
        );
      case "store":
        throw new Error(
          "The store is available only during a run, not while the graph is being loaded or its state is being read.",
        );
      case "fetch":
        throw new Error(
          "Requests to this server are possible only during a run, not while the graph is being loaded or its state is being read.",
        );
      default:
        throw new Error(
          "Checkpoints can be changed only during a run, not while the graph is being loaded or its state is being read.",
        );
    }
  } catch (error) {
    throw hideDriverMessage(error);
  }
}
