import { access } from "node:fs/promises";
import type Docker from "dockerode";

/** An engine that has said nothing for this long has no answer. */
const SILENT_MS = 60_000;

/** Nobody answers at the socket of the engine, or nobody may ask. */
export class EngineAway extends Error {
  constructor(socket: string, reason: string) {
    super(
      `No Docker engine answers at ${socket} (${reason}): start one that this service may use, or name its socket in THREADMILL_DOCKER_HOST.`,
    );
  }
}

/** The engine at a socket of this machine. Nothing is loaded and nobody is asked before something is to be done. */
export class Engine {
  readonly socket: string;
  #clients: Promise<{ brief: Docker; lasting: Docker }> | undefined;

  constructor(socket: string) {
    this.socket = socket;
  }

  /**
   * For questions that are answered at once.
   *
   * @throws EngineAway
   */
  ask<T>(question: (docker: Docker) => Promise<T>): Promise<T> {
    return this.#use(async () => question((await this.#open()).brief));
  }

  /**
   * For what takes its time: stops, pulls, logs that are followed.
   *
   * @throws EngineAway
   */
  have<T>(work: (docker: Docker) => Promise<T>): Promise<T> {
    return this.#use(async () => work((await this.#open()).lasting));
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw code !== undefined && AWAY.has(code) ? new EngineAway(this.socket, code) : error;
    }
  }

  async #open(): Promise<{ brief: Docker; lasting: Docker }> {
    // Where there is no engine, the client is not loaded: that takes a third of a second.
    await access(this.socket);
    this.#clients ??= import("dockerode").then(({ default: Client }) => ({
      brief: new Client({ socketPath: this.socket, timeout: SILENT_MS }),
      lasting: new Client({ socketPath: this.socket }),
    }));
    return this.#clients;
  }
}

const AWAY: ReadonlySet<string> = new Set([
  "ENOENT",
  "ECONNREFUSED",
  "EACCES",
  "EPERM",
  "ENOTSOCK",
  "ECONNRESET",
  "EPIPE",
]);

/**
 * Options for dockerode. Without this separation it sends all of them in the URL as well as in the body, and URLs are logged.
 */
export const requestParts = <T = object>(query: object, body: object = {}): T => ({ _query: query, _body: body }) as T;

/** The status with which the engine has refused; undefined when it was not the engine. */
export const statusOf = (error: unknown): number | undefined =>
  (error as { statusCode?: number } | undefined)?.statusCode;

/** What the engine has said, without what its client has put before it. */
export function saidBy(error: unknown): string {
  const { json, message } = error as { json?: { message?: string }; message?: string };
  return (json?.message ?? message ?? String(error)).trim().replace(/\.$/, "");
}

/** Undefined for what is not there. */
export const ifThere = <T>(asked: Promise<T>): Promise<T | undefined> => unless(asked, 404);

/** Undefined when the engine answers one of these statuses. */
export async function unless<T>(asked: Promise<T>, ...statuses: readonly number[]): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (statuses.includes(statusOf(error) ?? 0)) return undefined;
    throw error;
  }
}
