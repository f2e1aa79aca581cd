import { createHash, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { ConfigError } from "../../platform/errors.ts";

export interface EncryptionKey {
  /** Computed from the key, so that nobody has to invent one, and no other key can take it. */
  key_id: string;
  key: KeyObject;
}

const KEY_BYTES = 32;
/** Before the key in what its id is a digest of: the id is in the database for all to see, and tells nothing else. */
const ID_LABEL = "threadmill encryption key id";

/** What to type for a new key. */
export const HOW_TO_MAKE_ONE = "openssl rand -base64 32";

export function encryptionKeyOf(bytes: Buffer): EncryptionKey {
  const digest = createHash("sha256").update(ID_LABEL).update(bytes).digest("hex");
  return { key_id: digest.slice(0, 8), key: createSecretKey(bytes) };
}

export const newEncryptionKey = (): EncryptionKey => encryptionKeyOf(randomBytes(KEY_BYTES));

export const textOfKey = ({ key }: EncryptionKey): string => key.export().toString("base64");

/**
 * Reads a key from its base64.
 *
 * @param where what names it in the sentence of the error, which never holds the key
 * @throws ConfigError when it is not 32 bytes of base64
 */
export function parseEncryptionKey(text: string, where: string): EncryptionKey {
  const bytes = Buffer.from(text, "base64");
  // The decoder passes over what is no base64, so a typing error would be another key.
  if (bytes.length === KEY_BYTES && bytes.toString("base64") === text.padEnd(44, "=")) return encryptionKeyOf(bytes);
  throw new ConfigError(`${where} is not a key of 32 bytes in base64: make one with "${HOW_TO_MAKE_ONE}".`);
}

/** @throws ConfigError when there is no key at all */
export function ringOf(keys: readonly EncryptionKey[], where: string): readonly EncryptionKey[] {
  if (keys.length === 0) throw new ConfigError(`${where} has no key: make one with "${HOW_TO_MAKE_ONE}".`);
  return keys;
}
