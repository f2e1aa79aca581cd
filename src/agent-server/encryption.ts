import type { Caller } from "../platform/contract/caller.ts";
import { EncryptionUnavailableError } from "../platform/database/database-errors.ts";
import type { EncryptedTables, OpenedValue, PlainValue, SealedValue } from "../platform/database/encrypted-columns.ts";
import type { ValueEncryption } from "../platform/database/encrypted-database.ts";
import { ApiError, ConfigError } from "../platform/errors.ts";
import { isObject } from "../platform/lib/json/json.ts";
import type { Log } from "../platform/lib/log.ts";
import type { EncryptionFailure, EncryptionQuery } from "./graph-hosts/encryption-queries.ts";
import { GraphQueryError, type QueryHost } from "./graph-hosts/query-host.ts";

/**
 * The columns that `encryption.path` encrypts. The database filters metadata, configs, state values and items by their keys, so these stay
 * JSON objects. docs/security.md lists what stays readable.
 */
export const ENCRYPTED_TABLES: EncryptedTables = {
  threads: { model: "thread", columns: { metadata: "json", values: "json", interrupts: "blob", error: "blob" } },
  runs: { model: "run", columns: { metadata: "json", kwargs: "json", output: "blob", push_configs: "blob" } },
  run_events: { model: "run", columns: { data: "blob" } },
  checkpoints: { model: "checkpoint", columns: { metadata: "json" } },
  checkpoint_values: { model: "checkpoint", columns: { value: "blob" } },
  checkpoint_writes: { model: "checkpoint", columns: { value: "blob" } },
  assistants: { model: "assistant", columns: { metadata: "json", config: "json", context: "json" } },
  assistant_versions: { model: "assistant", columns: { metadata: "json", config: "json", context: "json" } },
  crons: { model: "cron", columns: { metadata: "json", payload: "json", auth_user: "blob" } },
  store_items: { model: "store", columns: { value: "json" } },
  webhook_deliveries: { model: "run", columns: { payload: "blob", push: "blob" } },
};

/** A larger batch would exceed the size of a message to the process. A larger value has a message of its own. */
const BATCH_CHARS = 8_000_000;
const UNAVAILABLE =
  "The encryption module of the project does not respond, or it could not be loaded. See the server's log for details.";
/** The process of the handlers reads and sends messages of at most 64 MB; encryption and JSON can more than double a value. */
const MAX_VALUE_CHARS = 20_000_000;
const TOO_LARGE = { name: "it has more than 20,000,000 characters", message: "" };
const MAX_CONTEXT_CHARS = 8_192;

export interface CustomEncryptionOptions {
  /** A Python host that loads only the encryption module. */
  host: Pick<QueryHost, "query" | "reload" | "stop">;
  log: Log;
}

/** Encrypts stored values with the project's handlers, which run in a Python host. If they fail, nothing is stored or returned. */
export class CustomEncryption implements ValueEncryption {
  readonly #options: CustomEncryptionOptions;
  readonly tables = ENCRYPTED_TABLES;
  #handlers: Promise<ReadonlySet<string>> | undefined;

  constructor(options: CustomEncryptionOptions) {
    this.#options = options;
  }

  /**
   * Loads the module.
   *
   * @throws ConfigError if that fails
   */
  async start(): Promise<void> {
    const handlers = await this.#registered().catch(() => {
      throw new ConfigError("The module specified in encryption.path could not be loaded. See the log for the reason.");
    });
    const missing = ["json", "blob"].filter((format) => !handlers.has(format));
    if (missing.length > 0)
      this.#options.log.warn(
        { handlers: missing },
        "the encryption module has no handlers for some values, which are stored unencrypted",
      );
  }

  /** Returns why the module cannot be loaded, if so: until it is corrected, values are neither stored nor returned. */
  async reload(): Promise<string | undefined> {
    this.#options.host.reload();
    this.#handlers = undefined;
    return this.start().then(
      () => undefined,
      (error: Error) => error.message,
    );
  }

  stop(): Promise<void> {
    return this.#options.host.stop();
  }

  /**
   * Returns the encryption context of a request, as JSON: that of the header `X-Encryption-Context`, and what the project's handler makes of
   * it. Undefined if there is neither.
   *
   * @throws ApiError encryption_context_invalid, encryption_failed; EncryptionUnavailableError
   */
  async contextOf(caller: Caller, header: string | undefined): Promise<string | undefined> {
    const sent = header === undefined ? undefined : parseHeader(header);
    if (!(await this.#registered()).has("context")) return sent;
    const { user_id, scopes } = caller;
    const user = caller.user ?? { identity: user_id, display_name: user_id, permissions: scopes };
    return this.#query({ kind: "encryption_context", user: JSON.stringify(user), metadata: sent ?? "{}" });
  }

  async encrypt(values: readonly PlainValue[], context: string): Promise<string[]> {
    const large = values.find(({ text }) => text.length > MAX_VALUE_CHARS);
    if (large) throw this.#failed("encrypted", large, TOO_LARGE);
    const encrypted: string[] = [];
    for (const items of batchesOf(values)) {
      const results = await this.#query({ kind: "encrypt", context, items });
      for (const [n, result] of results.entries()) {
        if ("error" in result) throw this.#failed("encrypted", items[n] as PlainValue, result.error);
        encrypted.push(result.text);
      }
    }
    return encrypted;
  }

  async decrypt(values: readonly SealedValue[]): Promise<OpenedValue[]> {
    const opened: OpenedValue[] = [];
    for (const items of batchesOf(values)) {
      const results = await this.#query({ kind: "decrypt", items });
      for (const [n, result] of results.entries())
        opened.push(
          "error" in result ? { error: this.#failed("decrypted", items[n] as SealedValue, result.error) } : result,
        );
    }
    return opened;
  }

  #registered(): Promise<ReadonlySet<string>> {
    this.#handlers ??= this.#query({ kind: "encryption_handlers" }).then((names) => new Set(names));
    // A failure may be temporary, for example if the process ran out of memory.
    this.#handlers.catch(() => {
      this.#handlers = undefined;
    });
    return this.#handlers;
  }

  /** A query that loses its process, perhaps because of another query, is repeated once. */
  async #query<Q extends EncryptionQuery>(query: Q) {
    const { host } = this.#options;
    try {
      return await host.query(query).catch((error) => {
        if (!(error instanceof GraphQueryError) || error.kind !== "GraphHostError") throw error;
        return host.query(query);
      });
    } catch (error) {
      const { kind = "Error", message } = error as Partial<GraphQueryError>;
      this.#options.log.error({ error: `${kind}: ${message}` }, "encryption module failed");
      if (query.kind === "encryption_context" && kind !== "GraphHostError" && kind !== "TimeoutError")
        throw new ApiError("encryption_failed", { reason: `The encryption context cannot be determined (${kind}).` });
      // Like an outage of the database: runs wait until it is over, and nothing that is stored is lost.
      throw new EncryptionUnavailableError(UNAVAILABLE);
    }
  }

  /** The message of a handler's error may contain the value, so callers and the log get only its class. */
  #failed(
    verb: string,
    { model, field }: Partial<PlainValue>,
    { name, message }: EncryptionFailure["error"],
  ): ApiError {
    const value = model === undefined ? field : `${model}.${field}`;
    this.#options.log.error({ value, error: name }, `value cannot be ${verb}`);
    this.#options.log.debug({ value, error: `${name}: ${message}` }, `value cannot be ${verb}`);
    return new ApiError("encryption_failed", { reason: `${value} cannot be ${verb} (${name}).` });
  }
}

function* batchesOf<V extends { text: string }>(values: readonly V[]): Generator<V[]> {
  let batch: V[] = [];
  let chars = 0;
  for (const value of values) {
    if (batch.length > 0 && chars + value.text.length > BATCH_CHARS) {
      yield batch;
      batch = [];
      chars = 0;
    }
    batch.push(value);
    chars += value.text.length;
  }
  if (batch.length > 0) yield batch;
}

function parseHeader(header: string): string {
  try {
    const value: unknown = JSON.parse(Buffer.from(header, "base64").toString());
    if (isObject(value) && header.length <= MAX_CONTEXT_CHARS) return JSON.stringify(value);
  } catch {
    // Not JSON.
  }
  throw new ApiError("encryption_context_invalid", { limit: MAX_CONTEXT_CHARS });
}
