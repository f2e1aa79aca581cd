import { workerData } from "node:worker_threads";
import { serveRpc } from "../../lib/worker-rpc.ts";
import type { SearchOperations } from "./sqlite.ts";
import { type ConnectionOptions, connect, statementsOf } from "./sqlite-connection.ts";

let time = 0;
const connection = connect({ ...(workerData as Omit<ConnectionOptions, "now">), now: () => time });
connection.exec("pragma query_only = on");
const prepare = statementsOf(connection);

const operations: SearchOperations = {
  all(now, sql, parameters) {
    time = now;
    return prepare(sql).all(parameters);
  },
  first(now, sql, parameters) {
    time = now;
    return prepare(sql).first(parameters);
  },
};

serveRpc(operations);
