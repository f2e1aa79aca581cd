import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { serveRpc } from "../../lib/worker-rpc.ts";

const connection = new DatabaseSync(workerData as string);
connection.exec("pragma busy_timeout = 0");
// A passive checkpoint does not block readers or writers.
const passive = connection.prepare("pragma wal_checkpoint(passive)");

const operations = { checkpoint: (): unknown => passive.get() };
export type CheckpointOperations = typeof operations;

serveRpc(operations);
