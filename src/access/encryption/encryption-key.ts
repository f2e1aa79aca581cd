import { createHash, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { ConfigError } from "../../platform/errors.ts";

export interface EncryptionKey {
  /** Derived from the key, so it needs no configuration and no other key can claim it. */
  key_id: string;
  key: KeyObject;
}

const KEY_BYTES = 32;
/** Prefix of the digest input. Key ids are visible in the database, so they must reveal nothing else that is derived from the key. */
const ID_LABEL = "threadmill encryption key id";

/** The shell command that error messages suggest for a new key. */
export const KEY_GENERATION_COMMAND = "openssl rand -base64 32";

export function keyFromBytes(bytes: Buffer): EncryptionKey {
  const digest = createHash("sha256").update(ID_LABEL).update(bytes).digest("hex");
  return { key_id: digest.slice(0, 8), key: createSecretKey(bytes) };
}

export const generateEncryptionKey = (): EncryptionKey => keyFromBytes(randomBytes(KEY_BYTES));

export const keyToBase64 = ({ key }: EncryptionKey): string => key.export().toString("base64");

/**
 * Parses a base64 key.
 *
 * @param where source of the key, for the error message; the message never contains the key
 * @throws ConfigError when the text is not 32 bytes of base64
 */
export function parseEncryptionKey(text: string, where: string): EncryptionKey {
  const bytes = Buffer.from(text, "base64");
  // The decoder ignores characters that are not base64, so a typing error would produce a different key.
  if (bytes.length === KEY_BYTES && bytes.toString("base64") === text.padEnd(44, "=")) return keyFromBytes(bytes);
  throw new ConfigError(`${where} is not a 32-byte key in base64: generate a key with "${KEY_GENERATION_COMMAND}".`);
}

/** @throws ConfigError when the list is empty */
export function requireKeys(keys: readonly EncryptionKey[], where: string): readonly EncryptionKey[] {
  if (keys.length === 0)
    throw new ConfigError(`${where} has no encryption key: generate a key with "${KEY_GENERATION_COMMAND}".`);
  return keys;
}
