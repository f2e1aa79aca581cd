import { repeating, type Service } from "../lib/service.ts";
import { deleteOldTokenEvents } from "../storage/vault/token-events.ts";
import type { VaultContext } from "./context.ts";

const EVERY_MS = 3_600_000;
/** Events that go in one transaction, so that no other write waits for long. */
const BATCH = 500;

/** Deletes token events that are old enough, once at the start and then every hour. */
export function tokenEventRetention({ database, log, settings }: VaultContext): Service {
  const sweep = async () => {
    const old = () => database.write((tx) => deleteOldTokenEvents(tx, settings.token_event_retention_ms, BATCH));
    while ((await old()) > 0);
  };
  return repeating(Math.min(EVERY_MS, settings.token_event_retention_ms), sweep, (error) =>
    log.error({ error }, "deleting old token events failed"),
  );
}
