import { createHash, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { ConfigError } from "../../platform/errors.ts";

export interface EncryptionKey {
  /** Derived from the key. */
  key_id: string;
  key: KeyObject;
}

const KEY_BYTES = 32;
/** Label for the derivation of key IDs. Key IDs are stored in plain text and must differ from other values derived from the key. */
const ID_LABEL = "threadmill encryption key id";

export const KEY_GENERATION_COMMAND = "openssl rand -base64 32";

export function keyFromBytes(bytes: Buffer): EncryptionKey {
  const digest = createHash("sha256").update(ID_LABEL).update(bytes).digest("hex");
  return { key_id: digest.slice(0, 8), key: createSecretKey(bytes) };
}

export const generateEncryptionKey = (): EncryptionKey => keyFromBytes(randomBytes(KEY_BYTES));

export const keyToBase64 = ({ key }: EncryptionKey): string => key.export().toString("base64");

/** @throws ConfigError whose message names the source `where` and never contains the key */
export function parseEncryptionKey(text: string, where: string): EncryptionKey {
  const bytes = Buffer.from(text, "base64");
  // The decoder ignores invalid characters, so a malformed text could also decode to 32 bytes.
  if (bytes.length === KEY_BYTES && bytes.toString("base64") === text.padEnd(44, "=")) return keyFromBytes(bytes);
  throw new ConfigError(`${where} is not a 32-byte key in base64. Generate a key with "${KEY_GENERATION_COMMAND}".`);
}

export function requireKeys(keys: readonly EncryptionKey[], where: string): readonly EncryptionKey[] {
  if (keys.length === 0)
    throw new ConfigError(`${where} contains no encryption key: generate a key with "${KEY_GENERATION_COMMAND}".`);
  return keys;
}
