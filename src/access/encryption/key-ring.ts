import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Log } from "../../platform/lib/log.ts";
import type { EncryptionKey } from "./encryption-key.ts";
import type { KeyFile } from "./key-file.ts";
import { type AadContext, type Seal, SealError } from "./seal.ts";

const CIPHER = "aes-256-gcm";
/** NIST SP 800-38D: random nonces of this length are safe for 2^32 texts per key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** `v1.<key id>.<base64url of nonce, ciphertext and tag>` */
const SEALED = /^v1\.([0-9a-f]{8})\.([\w-]+)$/;

/** Seals with the first key and opens with any key. Reloads a changed key file, so that a rotation needs no restart. */
export class KeyRing implements Seal {
  #keys: readonly EncryptionKey[];
  readonly #file: KeyFile | undefined;
  readonly #log: Pick<Log, "error">;

  /** @param keys must contain at least one key */
  constructor(keys: readonly EncryptionKey[], file: KeyFile | undefined, log: Pick<Log, "error">) {
    this.#keys = keys;
    this.#file = file;
    this.#log = log;
  }

  get keys(): readonly EncryptionKey[] {
    return this.#keys;
  }

  /** Key that encrypts new values. */
  get first(): EncryptionKey {
    return this.#keys[0] as EncryptionKey;
  }

  seal(text: string, aad: AadContext): string {
    this.reloadIfChanged();
    return sealWith(this.first, text, aad);
  }

  open(sealed: string, aad: AadContext): string {
    const key_id = SEALED.exec(sealed)?.[1];
    if (key_id === undefined) throw new SealError(aad, undefined, "the stored value is not an encrypted value");
    if (!this.#find(key_id)) this.reloadIfChanged();
    const key = this.#find(key_id);
    if (key) return openWith(key, sealed, aad);
    throw new SealError(aad, key_id, `the encryption key ${key_id} is not configured`);
  }

  /** Reloads the keys. If the file cannot be read, the current keys stay in use. */
  reloadIfChanged(): void {
    try {
      if (this.#file?.hasChanged()) this.#keys = this.#file.read();
    } catch (error) {
      this.#log.error({ error }, "encryption key reload failed");
    }
  }

  #find(key_id: string): EncryptionKey | undefined {
    return this.#keys.find((key) => key.key_id === key_id);
  }
}

/** Encodes the context as JSON, so that two different contexts never have the same bytes. */
const aadBytes = ({ tenant_id, table, row_id, column }: AadContext, key_id: string): Buffer =>
  Buffer.from(JSON.stringify(["v1", key_id, tenant_id, table, row_id, column]));

export function sealWith({ key_id, key }: EncryptionKey, text: string, aad: AadContext): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(aadBytes(aad, key_id));
  const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `v1.${key_id}.${sealed.toString("base64url")}`;
}

/** @throws SealError if the text was modified or moved */
export function openWith({ key_id, key }: EncryptionKey, sealed: string, aad: AadContext): string {
  const mismatch = (): SealError =>
    new SealError(aad, key_id, "the stored value was modified, or was encrypted for another row, column or workspace");
  const [, id, text = ""] = SEALED.exec(sealed) ?? [];
  const bytes = Buffer.from(text, "base64url");
  // The decoder ignores the last bits of the last character, so two different texts can decode to the same bytes.
  const isWellFormed = id === key_id && bytes.length >= NONCE_BYTES + TAG_BYTES && bytes.toString("base64url") === text;
  if (!isWellFormed) throw mismatch();
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(aadBytes(aad, key_id));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    throw mismatch();
  }
}
