import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

// A passive checkpoint copies what it can without blocking readers or writers.
const connection = new DatabaseSync(workerData as string);
connection.exec("pragma busy_timeout = 0");
const checkpoint = connection.prepare("pragma wal_checkpoint(passive)");
parentPort?.on("message", () => checkpoint.all());
