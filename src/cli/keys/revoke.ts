import { keyIdOf } from "../../access/keys/api-key-text.ts";
import { revokeApiKey } from "../../access/storage/api-keys.ts";
import type { Flags } from "../../config/config.ts";
import { ConfigError } from "../../platform/errors.ts";
import { besideService } from "./beside.ts";

/** Ends a key. Whoever has found a whole key may name it by that. */
export async function revokeKey(text: string, flags: Flags): Promise<void> {
  const key_id = keyIdOf(text) ?? text;
  const count = await besideService(flags, (database) => database.write((tx) => revokeApiKey(tx, key_id, undefined)));
  if (count === 0) {
    throw new ConfigError(
      `There is no key with the id "${key_id}": "threadmill keys list" shows the ids, which are the parts of the keys between tmk_ and the next _.`,
    );
  }
  console.log(`The key ${key_id} is revoked.`);
}
