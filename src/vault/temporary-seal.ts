import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Place, Seal } from "./seal.ts";

/** Stands in for the key ring until that is here: AES-256-GCM with a key that ends with the process. */
export function temporarySeal(): Seal {
  const key = randomBytes(32);
  const aadOf = ({ tenant_id, table, row_id, column }: Place) =>
    Buffer.from(JSON.stringify([tenant_id, table, row_id, column]));
  return {
    seal(text, place) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(aadOf(place));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
    },
    open(sealed, place) {
      const bytes = Buffer.from(sealed, "base64url");
      const cipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12));
      cipher.setAAD(aadOf(place)).setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([cipher.update(bytes.subarray(28)), cipher.final()]).toString("utf8");
    },
  };
}
