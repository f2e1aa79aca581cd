import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * Format of an API key: `tmk_<key_id>_<secret>`. Secret scanners recognize the prefix, the 12 characters of the id identify the key
 * in the API and the database, and the secret is 32 random bytes as 43 characters of base64url.
 */
const API_KEY = /^tmk_([a-z2-7]{12})_[\w-]{43}$/;

/** Base32: 5 bits per character, so that a random byte maps to a character without bias. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

export function generateApiKey(): { key_id: string; key: string } {
  const key_id = Array.from(randomBytes(12), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
  return { key_id, key: `tmk_${key_id}_${randomBytes(32).toString("base64url")}` };
}

export const parseKeyId = (text: string): string | undefined => API_KEY.exec(text)?.[1];

/** SHA-256 in hex, for keys and OAuth states. A slow hash adds no protection to 256 random bits. */
export const digestOf = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Compares in constant time. */
export const matchesDigest = (key: string, digest: string): boolean =>
  timingSafeEqual(Buffer.from(digestOf(key), "hex"), Buffer.from(digest, "hex"));

/** Digest that matches no key. A comparison with this digest takes as long as with the digest of an existing key. */
export const DUMMY_DIGEST = "0".repeat(64);
