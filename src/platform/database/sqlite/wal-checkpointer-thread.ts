import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

// The inside of wal-checkpointer.ts. "Passive" copies what it can without holding up readers or writers.
const connection = new DatabaseSync(workerData as string);
connection.exec("pragma busy_timeout = 0");
const checkpoint = connection.prepare("pragma wal_checkpoint(passive)");
parentPort?.on("message", () => checkpoint.all());
