import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { serveRpc } from "../../lib/worker-rpc.ts";
import type { CheckpointOperations } from "./sqlite.ts";

const connection = new DatabaseSync(workerData as string);
connection.exec("pragma busy_timeout = 0");
// A passive checkpoint does not block readers or writers.
const passive = connection.prepare("pragma wal_checkpoint(passive)");

const operations: CheckpointOperations = { checkpoint: () => passive.get() };
serveRpc(operations);
