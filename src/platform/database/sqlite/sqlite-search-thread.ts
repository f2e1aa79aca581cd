import { workerData } from "node:worker_threads";
import { answerQuestions } from "../../lib/asked-thread.ts";
import { type ConnectionOptions, connect, statementsOf } from "./sqlite-connection.ts";
import type { Search } from "./sqlite-search.ts";

// The inside of sqlite-search.ts.
let time = 0;
const connection = connect({ ...(workerData as Omit<ConnectionOptions, "now">), now: () => time });
connection.exec("pragma query_only = on");
const prepare = statementsOf(connection);

answerQuestions<Search, unknown>(({ method, sql, parameters, now }) => {
  time = now;
  return prepare(sql)[method === "all" ? "all" : "get"](...parameters);
});
