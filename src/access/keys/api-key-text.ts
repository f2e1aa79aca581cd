import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * An API key is `tmk_<key_id>_<secret>`: a prefix by which scanners of leaked secrets know it, 12 characters by which it is
 * looked up and called, and 32 random bytes as 43 characters of base64url.
 */
const API_KEY = /^tmk_([a-z2-7]{12})_[\w-]{43}$/;

/** Base32: 5 bits a character, so that each byte of the random source gives one without a bias. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** A new key with its public part. */
export function newApiKey(): { key_id: string; key: string } {
  const key_id = Array.from(randomBytes(12), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
  return { key_id, key: `tmk_${key_id}_${randomBytes(32).toString("base64url")}` };
}

/** The public part of a text that looks like an API key. */
export const keyIdOf = (text: string): string | undefined => API_KEY.exec(text)?.[1];

/**
 * SHA-256 in hex, which is what is kept of a key. A slow hash would protect nothing: nobody tries out 256 random bits.
 */
export const digestOf = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Whether a key is the one of this digest, in the same time whether it is or not. */
export const isOfDigest = (key: string, digest: string): boolean =>
  timingSafeEqual(Buffer.from(digestOf(key), "hex"), Buffer.from(digest, "hex"));

/** The digest of no key, for a comparison that takes as long as one with a key that is there. */
export const NO_DIGEST = "0".repeat(64);
