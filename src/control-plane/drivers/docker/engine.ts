import { access } from "node:fs/promises";
import type Docker from "dockerode";

const RESPONSE_TIMEOUT_MS = 60_000;

/** The Docker Engine is not running, or the service cannot access the socket. */
export class EngineUnavailableError extends Error {
  constructor(socket: string, reason: string) {
    super(
      `Cannot connect to the Docker Engine at ${socket} (${reason}): start the engine, give this service access to the socket, or set THREADMILL_DOCKER_HOST to another socket.`,
    );
  }
}

/** Client of the Docker Engine at a Unix socket. The client library is loaded on the first call. */
export class Engine {
  readonly socket: string;
  #clients: Promise<{ short: Docker; long: Docker }> | undefined;

  constructor(socket: string) {
    this.socket = socket;
  }

  /**
   * Sends a request with a time limit, for calls to which Docker responds immediately.
   *
   * @throws EngineUnavailableError
   */
  call<T>(request: (docker: Docker) => Promise<T>): Promise<T> {
    return this.#use(async () => request((await this.#open()).short));
  }

  /**
   * Sends a request without a time limit, for example to stop a container, pull an image or follow a log.
   *
   * @throws EngineUnavailableError
   */
  callLong<T>(request: (docker: Docker) => Promise<T>): Promise<T> {
    return this.#use(async () => request((await this.#open()).long));
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw code !== undefined && UNAVAILABLE.has(code) ? new EngineUnavailableError(this.socket, code) : error;
    }
  }

  async #open(): Promise<{ short: Docker; long: Docker }> {
    // The socket is checked first, because loading the client library takes a third of a second.
    await access(this.socket);
    this.#clients ??= import("dockerode").then(({ default: Client }) => ({
      short: new Client({ socketPath: this.socket, timeout: RESPONSE_TIMEOUT_MS }),
      long: new Client({ socketPath: this.socket }),
    }));
    return this.#clients;
  }
}

const UNAVAILABLE: ReadonlySet<string> = new Set([
  "ENOENT",
  "ECONNREFUSED",
  "EACCES",
  "EPERM",
  "ENOTSOCK",
  "ECONNRESET",
  "EPIPE",
]);

/** Separates query and body. Otherwise, dockerode would also send body fields, such as secrets, in the URL, which is logged. */
export const separateParts = <T = object>(query: object, body: object = {}): T => ({ _query: query, _body: body }) as T;

/** HTTP status of a Docker error response; undefined for other errors. */
export const statusOf = (error: unknown): number | undefined =>
  (error as { statusCode?: number } | undefined)?.statusCode;

/** Docker's error message, without the prefix that the client adds. */
export function engineMessage(error: unknown): string {
  const { json, message } = error as { json?: { message?: string }; message?: string };
  return (json?.message ?? message ?? String(error)).trim().replace(/\.$/, "");
}

export const undefinedIfMissing = <T>(call: Promise<T>): Promise<T | undefined> => undefinedOnStatus(call, 404);

export async function undefinedOnStatus<T>(call: Promise<T>, ...statuses: readonly number[]): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (statuses.includes(statusOf(error) ?? 0)) return undefined;
    throw error;
  }
}
