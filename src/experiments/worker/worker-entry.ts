import { parentPort, workerData } from "node:worker_threads";
import { migrate } from "../../platform/database/migrate.ts";
import { openPostgres } from "../../platform/database/postgres/postgres.ts";
import { openSqlite } from "../../platform/database/sqlite/sqlite.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { systemClock } from "../../platform/lib/clock.ts";
import { createLog } from "../../platform/lib/log.ts";
import { JsonPieces } from "../json-pieces.ts";
import { experiments } from "../storage/migrations/experiments-001.ts";
import type { LaneSetup, Reply, Request } from "./experiments-service.ts";
import { createOperations } from "./operations.ts";

/**
 * A lane: opens the database and answers what it is asked. Questions overlap where they wait (Postgres); on SQLite each is
 * answered in one go. The first lane to open a database brings its schema up to date.
 */

/** Storing an upload of 100,000 rows holds SQLite's one lock for about 10 s, and another lane may only wait. */
const BUSY_TIMEOUT_MS = 60_000;

/** A lane has few questions at a time, and the agent server wants connections, too. */
const POOL_SIZE = 4;

const { database: where, log_level, cache_mb } = workerData as LaneSetup;
const database =
  "url" in where
    ? openPostgres({ url: where.url, log: createLog(log_level), pool_size: POOL_SIZE })
    : openSqlite({ ...where, clock: systemClock, busy_timeout_ms: BUSY_TIMEOUT_MS, checkpointer: "writer", cache_mb });
await migrate(database, [experiments]);

const operations = createOperations({ database }) as unknown as Record<
  string,
  Record<string, (...args: unknown[]) => Promise<unknown>>
>;
let open = 0;
let isStopping = false;

async function answer({ id, noun, verb, args }: Request): Promise<Reply> {
  try {
    const value = await operations[noun]?.[verb]?.(...args);
    if (!(value instanceof JsonPieces)) return { id, json: JSON.stringify(value) };
    for (const piece of value) parentPort?.postMessage({ id, piece } satisfies Reply);
    return { id, isWhole: true };
  } catch (error) {
    if (error instanceof InvalidRequestError) return { id, invalid: error.parts };
    if (error instanceof ApiError) return { id, api: { code: error.code, message: error.message } };
    const { message, stack, code } = error as Error & { code?: string };
    return { id, failed: { message, stack, code } };
  }
}

async function closeWhenIdle(): Promise<void> {
  if (!isStopping || open > 0) return;
  await database.close();
  parentPort?.close();
}

parentPort?.on("message", async (message: Request | "stop") => {
  if (message === "stop") isStopping = true;
  else {
    open++;
    parentPort?.postMessage(await answer(message));
    open--;
  }
  await closeWhenIdle();
});
