import { AsyncLocalStorage } from "node:async_hooks";
import { newId } from "../lib/ids.ts";
import type { Database, DatabaseEncryption, Tx } from "./database.ts";
import { StatementCache } from "./database.ts";
import {
  Decryption,
  EncryptedColumns,
  type EncryptedTables,
  EncryptedTx,
  type OpenedValue,
  type PlainValue,
  type SealedValue,
  type Values,
} from "./encrypted-columns.ts";

/** Encrypts and decrypts values. An encrypted JSON text begins with a tab, another encrypted text with U+0001. */
export interface ValueEncryption {
  readonly tables: EncryptedTables;
  /**
   * @param context the encryption context, as JSON
   * @throws ApiError encryption_failed; EncryptionUnavailableError if the functions cannot be called
   */
  encrypt(values: readonly PlainValue[], context: string): Promise<string[]>;
  /** `field` is the name of the column. */
  decrypt(values: readonly SealedValue[]): Promise<OpenedValue[]>;
}

const CONTEXT = new AsyncLocalStorage<string>();

/** Sets the encryption context of all writes of `work`. */
export const inEncryptionContext = <T>(context: string, work: () => T): T => CONTEXT.run(context, work);

/** The encryption context of values that no request stores. */
export const NO_CONTEXT = "{}";
/** A transaction whose texts change each time it is repeated, such as those with a time, encrypts within the transaction. */
const MAX_PASSES = 4;
const PENDING_MARK = "\u0001pending:";

/**
 * Encrypts the columns of a database with functions that run in another process. A transaction never waits for them: it is rolled back as
 * soon as it needs a value that is not known, and repeated once the value is. Transactions can be repeated, because Postgres requires it.
 */
export function encryptDatabase(inner: Database, encryption: ValueEncryption): Database {
  const decryption = new Decryption(encryption.tables);
  const sealing = { plugin: new EncryptedColumns(encryption.tables), statements: new StatementCache(), decryption };
  const read = (tx: Tx): Tx => new EncryptedTx(tx, sealing, new DirectValues(encryption));
  const writeIn = async <T>(work: (tx: Tx) => Promise<T>, write: Database["write"], given: string | undefined) => {
    const known = new KnownValues(encryption, given ?? CONTEXT.getStore());
    for (let pass = 1; ; pass++) {
      known.waits = pass > MAX_PASSES;
      try {
        return await write(async (tx) => {
          known.begin();
          const value = await work(new EncryptedTx(tx, sealing, known)).catch((error) => {
            // An error may result from a value that is not known yet.
            if (!known.isMissing) throw error;
          });
          if (known.isMissing) throw REPEAT;
          return value as T;
        });
      } catch (error) {
        if (error !== REPEAT) throw error;
      }
      await known.resolve();
    }
  };
  const viewOf = (context: () => string | undefined): Omit<Database, "encryption"> => ({
    description: inner.description,
    read: read(inner.read),
    search: read(inner.search),
    hints: inner.hints,
    worker_id: inner.worker_id,
    isAvailable: () => inner.isAvailable(),
    ...(inner.connections && { connections: () => inner.connections?.() ?? { active: 0, idle: 0, waiting: 0 } }),
    async write(work, hint) {
      const value = await writeIn(work, (each) => inner.write(each), context());
      // After the commit on SQLite, too: a claim before it would not find the run.
      if (hint) inner.hints.emit(hint);
      return value;
    },
    // Not a transaction on Postgres, so it cannot be repeated. It writes no encrypted columns.
    writeNow: (work) => inner.writeNow(work),
    migrate: (work) => inner.migrate(work),
    freeLocks: (ids) => inner.freeLocks(ids),
    close: () => inner.close(),
  });
  const access: DatabaseEncryption = {
    sealed: inner,
    async open(row) {
      const values = new DirectValues(encryption);
      await decryption.open([row], values);
      return values.context;
    },
    scoped() {
      const scope: { context: string | undefined } = { context: undefined };
      return Object.assign(
        scope,
        viewOf(() => scope.context),
        { encryption: access },
      );
    },
  };
  return { ...viewOf(() => undefined), encryption: access };
}

const REPEAT = new Error("The transaction is repeated.");

/** Reads wait for decryption. */
class DirectValues implements Values {
  readonly #encryption: ValueEncryption;
  readonly isLazy = false;
  /** The context of the values that were decrypted. */
  context: string | undefined;

  constructor(encryption: ValueEncryption) {
    this.#encryption = encryption;
  }

  encrypted(): string {
    throw new Error("Encrypted columns can be written only in a transaction.");
  }

  async prepare(): Promise<void> {}

  readonly newId = newId;

  async opened(values: Parameters<Values["opened"]>[0]): Promise<OpenedValue[]> {
    const opened = await this.#encryption.decrypt(values);
    for (const each of opened) if ("context" in each) this.context ??= each.context;
    return opened;
  }
}

/** The values of a transaction: those that earlier passes needed are known. */
class KnownValues implements Values {
  readonly #encryption: ValueEncryption;
  readonly isLazy = true;
  /** Whether values are encrypted and decrypted during the transaction. */
  waits = false;
  #context: string | undefined;
  readonly #encrypted = new Map<string, string>();
  readonly #opened = new Map<string, OpenedValue>();
  readonly #ids: string[] = [];
  #used_ids = 0;
  readonly #toEncrypt = new Map<string, PlainValue>();
  readonly #toOpen = new Map<string, SealedValue>();
  /** The values behind the texts that stand for values that are not encrypted yet. */
  readonly #pending = new Map<string, string>();

  constructor(encryption: ValueEncryption, context: string | undefined) {
    this.#encryption = encryption;
    this.#context = context;
  }

  begin(): void {
    this.#used_ids = 0;
    this.#toEncrypt.clear();
    this.#toOpen.clear();
  }

  newId(): string {
    this.#ids[this.#used_ids] ??= newId();
    return this.#ids[this.#used_ids++] as string;
  }

  get isMissing(): boolean {
    return this.#toEncrypt.size > 0 || this.#toOpen.size > 0;
  }

  encrypted(value: PlainValue): string {
    const key = keyOf(value);
    const known = this.#encrypted.get(key);
    if (known !== undefined) return known;
    this.#toEncrypt.set(key, value);
    // The pass goes on, so that one message encrypts all values of the transaction. Nothing of it is committed.
    const pending = `${PENDING_MARK}${this.#pending.size}`;
    this.#pending.set(pending, value.text);
    return pending;
  }

  async prepare(values: readonly PlainValue[]): Promise<void> {
    if (!this.waits) return;
    for (const value of values) this.encrypted(value);
    await this.resolve();
  }

  async opened(values: Parameters<Values["opened"]>[0]): Promise<OpenedValue[]> {
    const known = () =>
      values.map(({ text }): OpenedValue | undefined => {
        const pending = this.#pending.get(text);
        return pending === undefined ? this.#opened.get(text) : { text: pending, context: "" };
      });
    const found = known();
    for (const [n, value] of values.entries()) if (!found[n]) this.#toOpen.set(value.text, value);
    if (this.#toOpen.size === 0) return found as OpenedValue[];
    if (!this.waits) throw REPEAT;
    await this.resolve();
    return known() as OpenedValue[];
  }

  /** Makes the missing values known. */
  async resolve(): Promise<void> {
    const to_open = [...this.#toOpen.values()];
    const to_encrypt = [...this.#toEncrypt];
    this.#toEncrypt.clear();
    this.#toOpen.clear();
    if (to_open.length > 0) {
      const opened = await this.#encryption.decrypt(to_open);
      for (const [n, each] of opened.entries()) {
        this.#opened.set((to_open[n] as SealedValue).text, each);
        // Without a request, a change of a row keeps its context.
        if ("context" in each) this.#context ??= each.context;
      }
    }
    // The context may change with the rows that the transaction has yet to read.
    if (to_encrypt.length === 0 || (to_open.length > 0 && !this.waits)) return;
    const plain = to_encrypt.map(([, value]) => value);
    const context = this.#context ?? NO_CONTEXT;
    const encrypted = await this.#encryption.encrypt(plain, context);
    for (const [n, [key, { text }]] of to_encrypt.entries()) {
      const stored = encrypted[n] as string;
      this.#encrypted.set(key, stored);
      // The transaction may read what it has written.
      this.#opened.set(stored, { text, context });
    }
  }
}

const keyOf = ({ model, field, text }: PlainValue): string => `${model}.${field} ${text}`;
