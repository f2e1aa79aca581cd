import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Log } from "../../platform/lib/log.ts";
import type { EncryptionKey } from "./encryption-key.ts";
import type { KeyFile } from "./key-file.ts";
import { type Place, type Seal, SealError } from "./seal.ts";

const CIPHER = "aes-256-gcm";
/** What NIST SP 800-38D recommends. Drawn at random, it is good for 2^32 texts a key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** `v1.<key id>.<base64url of nonce, ciphertext and tag>` */
const SEALED = /^v1\.([0-9a-f]{8})\.([\w-]+)$/;

/**
 * Seals with the first of its keys, and opens with all of them. Keys that come from a file follow it: a rotation puts a new one in
 * front, which is used from the next text on, also by the processes that run.
 */
export class KeyRing implements Seal {
  #keys: readonly EncryptionKey[];
  readonly #file: KeyFile | undefined;
  readonly #log: Pick<Log, "error">;

  /** @param keys at least one */
  constructor(keys: readonly EncryptionKey[], file: KeyFile | undefined, log: Pick<Log, "error">) {
    this.#keys = keys;
    this.#file = file;
    this.#log = log;
  }

  /** The first one encrypts. */
  get keys(): readonly EncryptionKey[] {
    return this.#keys;
  }

  get first(): EncryptionKey {
    return this.#keys[0] as EncryptionKey;
  }

  seal(text: string, place: Place): string {
    this.followFile();
    return sealWith(this.first, text, place);
  }

  open(sealed: string, place: Place): string {
    const key_id = SEALED.exec(sealed)?.[1];
    if (key_id !== undefined && !this.#find(key_id)) this.followFile();
    const key = key_id === undefined ? undefined : this.#find(key_id);
    if (key) return openWith(key, sealed, place);
    throw new SealError(
      place,
      key_id,
      key_id === undefined ? "it is not a sealed text" : `its key ${key_id} is not among the encryption keys`,
    );
  }

  /** Takes the keys of the file, if it is another by now. One that cannot be read leaves those that are there. */
  followFile(): void {
    try {
      if (this.#file?.hasChanged()) this.#keys = this.#file.read();
    } catch (error) {
      this.#log.error({ error }, "the encryption keys could not be read again; those of before stay in use");
    }
  }

  #find(key_id: string): EncryptionKey | undefined {
    return this.#keys.find((key) => key.key_id === key_id);
  }
}

/** What a text is bound to besides its key. JSON, because one place must never read as another. */
const bindingOf = ({ tenant_id, table, row_id, column }: Place, key_id: string): Buffer =>
  Buffer.from(JSON.stringify(["v1", key_id, tenant_id, table, row_id, column]));

export function sealWith({ key_id, key }: EncryptionKey, text: string, place: Place): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(bindingOf(place, key_id));
  const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `v1.${key_id}.${sealed.toString("base64url")}`;
}

/** @throws SealError when it was changed or moved */
export function openWith({ key_id, key }: EncryptionKey, sealed: string, place: Place): string {
  const changed = (): SealError => new SealError(place, key_id, "it was changed, or belongs to another place");
  const [, id, text = ""] = SEALED.exec(sealed) ?? [];
  const bytes = Buffer.from(text, "base64url");
  // The decoder passes over the last bits of the last letter: two texts would be one.
  const whole = id === key_id && bytes.length >= NONCE_BYTES + TAG_BYTES && bytes.toString("base64url") === text;
  if (!whole) throw changed();
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(bindingOf(place, key_id));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    throw changed();
  }
}
