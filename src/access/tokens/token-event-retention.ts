import { repeating, type Service } from "../../platform/lib/service.ts";
import type { VaultContext } from "../context.ts";
import { deleteOldTokenEvents } from "../storage/token-events.ts";

const EVERY_MS = 60_000;
/** Events that go in one transaction, so that no other write waits for long. */
const BATCH = 500;

/** Deletes token events that are old enough. */
export function tokenEventRetention(
  { database, log, settings }: Pick<VaultContext, "database" | "log" | "settings">,
  every_ms = EVERY_MS,
): Service {
  const sweep = async () => {
    const deleteSome = () => database.write((tx) => deleteOldTokenEvents(tx, settings.token_event_retention_ms, BATCH));
    while ((await deleteSome()) === BATCH);
  };
  return repeating(every_ms, sweep, (error) => log.error({ error }, "deleting old token events failed"));
}
