import type { SQLInputValue } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { serveRpc } from "../../lib/worker-rpc.ts";
import { type ConnectionOptions, connect, statementsOf } from "./sqlite-connection.ts";

let time = 0;
const connection = connect({ ...(workerData as Omit<ConnectionOptions, "now">), now: () => time });
connection.exec("pragma query_only = on");
const prepare = statementsOf(connection);

/** `now` is the time that `now_ms()` returns in the query. */
const operations = {
  all(now: number, sql: string, parameters: SQLInputValue[]): unknown[] {
    time = now;
    return prepare(sql).all(...parameters);
  },
  first(now: number, sql: string, parameters: SQLInputValue[]): unknown {
    time = now;
    return prepare(sql).get(...parameters);
  },
};
export type SearchOperations = typeof operations;

serveRpc(operations);
