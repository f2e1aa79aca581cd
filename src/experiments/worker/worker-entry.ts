import { workerData } from "node:worker_threads";
import { migrate } from "../../platform/database/migrate.ts";
import { openSqlite } from "../../platform/database/sqlite/sqlite.ts";
import { systemClock } from "../../platform/lib/clock.ts";
import { createLog } from "../../platform/lib/log.ts";
import { serveRpc } from "../../platform/lib/worker-rpc.ts";
import { JsonPieces } from "../json-pieces.ts";
import { EXPERIMENT_MIGRATIONS } from "../storage/migrations.ts";
import { SpanExport } from "../traces/otlp/span-export.ts";
import type { JsonOperations, WorkerOptions } from "./experiments-service.ts";
import { OPERATION_WORKERS } from "./operation-workers.ts";
import { createOperations } from "./operations.ts";

/** Storing an upload of 100,000 rows holds the write lock of SQLite for about 10 s. */
const BUSY_TIMEOUT_MS = 60_000;

const { database: location, log_level, worker, cache_mb, pool_size, span_export } = workerData as WorkerOptions;
const log = createLog(log_level);
const database =
  "url" in location
    ? (await import("../../platform/database/postgres/postgres.ts")).openPostgres({ ...location, log, pool_size })
    : openSqlite({
        ...location,
        clock: systemClock,
        busy_timeout_ms: BUSY_TIMEOUT_MS,
        checkpointer: "writer",
        cache_mb,
      });
await migrate(database, EXPERIMENT_MIGRATIONS);

const spans = span_export && new SpanExport(span_export, log);
const groups = createOperations(database, spans) as unknown as Record<
  string,
  Record<string, (...args: unknown[]) => Promise<unknown>>
>;
const served: JsonOperations = {};
for (const [group, workers] of Object.entries(OPERATION_WORKERS)) {
  for (const [name, of] of Object.entries(workers)) {
    if (of !== worker) continue;
    served[`${group}.${name}`] = async (...args) => {
      const value = await groups[group]?.[name]?.(...args);
      if (value instanceof JsonPieces) return value[Symbol.iterator]();
      return value instanceof Uint8Array ? value : (JSON.stringify(value) ?? "null");
    };
  }
}
serveRpc(served, async () => {
  await spans?.stop();
  await database.close();
});
