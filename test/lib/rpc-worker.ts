import { setTimeout as sleep } from "node:timers/promises";
import { threadId, workerData } from "node:worker_threads";
import { ApiError, InvalidRequestError } from "../../src/platform/errors.ts";
import { JsonError } from "../../src/platform/lib/json/json.ts";
import { serveRpc } from "../../src/platform/lib/worker-rpc.ts";

const stopped = new Int32Array(workerData as SharedArrayBuffer);

const operations = {
  thread: () => threadId,
  double: (bytes: Uint8Array) => bytes.map((byte) => 2 * byte),
  async slow(ms: number) {
    await sleep(ms);
    return "done";
  },
  *count(to: number, fails: boolean) {
    for (let n = 1; n <= to; n++) yield n;
    if (fails) throw new ApiError("run_not_found");
  },
  fail(kind: "api" | "invalid" | "json" | "other") {
    if (kind === "api") throw new ApiError("graph_failed", { reason: "it is Monday" });
    if (kind === "invalid")
      throw new InvalidRequestError([{ loc: ["body", 1], msg: "Field required", type: "missing" }]);
    if (kind === "json") throw new JsonError("is not valid JSON", { position: 7, reason: "Expecting value" });
    throw Object.assign(new RangeError("out of range"), { code: "ERR_SOME", errcode: 13 });
  },
  notCloneable: () => () => undefined,
  exit: () => process.exit(3),
};
export type TestOperations = typeof operations;

serveRpc(operations, async () => {
  await sleep(10);
  Atomics.add(stopped, 0, 1);
});
