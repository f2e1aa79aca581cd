import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isDiskFull } from "../../src/platform/database/database-errors.ts";
import { ApiError, InvalidRequestError } from "../../src/platform/errors.ts";
import { JsonError } from "../../src/platform/lib/json/json.ts";
import { WorkerRpc, type WorkerRpcOptions } from "../../src/platform/lib/worker-rpc.ts";
import type { TestOperations } from "./rpc-worker.ts";

describe("a worker thread", () => {
  let stopped: Int32Array;
  let worker: WorkerRpc<TestOperations>;
  const start = (options: Partial<WorkerRpcOptions> = {}) =>
    new WorkerRpc<TestOperations>({
      entry: new URL("./rpc-worker", import.meta.url),
      name: "test",
      workerData: stopped.buffer,
      ...options,
    });
  beforeEach(() => {
    stopped = new Int32Array(new SharedArrayBuffer(4));
    worker = start();
  });
  afterEach(() => worker.terminate());

  it("returns values, and overlaps calls that wait", async () => {
    const slow = worker.call("slow", [100]);
    const bytes = new Uint8Array([1, 2, 3]);
    expect(await worker.call("double", [bytes], [bytes.buffer])).toEqual(new Uint8Array([2, 4, 6]));
    expect(bytes).toHaveLength(0);
    expect(await Promise.race([slow, "not yet"])).toBe("not yet");
    expect(await slow).toBe("done");
  });

  it("sends a generator piece by piece, up to its error", async () => {
    const read: number[] = [];
    for await (const n of await worker.call("count", [3, false])) read.push(n);
    expect(read).toEqual([1, 2, 3]);
    for await (const _ of await worker.call("count", [0, false])) throw new Error("there is no piece");
    const failing = (async () => {
      for await (const n of await worker.call("count", [2, true])) read.push(n);
    })();
    await expect(failing).rejects.toMatchObject({ code: "run_not_found", status: 404 });
    expect(read).toEqual([1, 2, 3, 1, 2]);
    await expect(worker.call("count", [0, true])).rejects.toBeInstanceOf(ApiError);
  });

  it("keeps the class of errors", async () => {
    const errorOf = (kind: "api" | "invalid" | "json" | "other") => worker.call("fail", [kind]).catch((error) => error);
    expect(await errorOf("api")).toEqual(new ApiError("graph_failed", { reason: "it is Monday" }));
    const invalid = await errorOf("invalid");
    expect(invalid).toBeInstanceOf(InvalidRequestError);
    expect(invalid).toMatchObject({ parts: [{ loc: ["body", 1], msg: "Field required", type: "missing" }] });
    const json = await errorOf("json");
    expect(json).toBeInstanceOf(JsonError);
    expect(json).toMatchObject({ message: "is not valid JSON", fault: { position: 7, reason: "Expecting value" } });
    const other = await errorOf("other");
    expect(other).toMatchObject({ name: "RangeError", message: "out of range", code: "ERR_SOME", errcode: 13 });
    expect(isDiskFull(other)).toBe(true);
    expect(other.stack).toContain("rpc-worker.ts");
  });

  it("fails a call whose result cannot be copied, and continues", async () => {
    await expect(worker.call("notCloneable", [])).rejects.toThrow("could not be cloned");
    expect(await worker.call("slow", [0])).toBe("done");
  });

  it("fails open calls when it ends, and starts again with the next call", async () => {
    const first = await worker.call("thread", []);
    const open = worker.call("slow", [10_000]);
    await expect(worker.call("exit", [])).rejects.toThrow('The worker thread "test" exited.');
    await expect(open).rejects.toThrow("exited");
    expect(await worker.call("thread", [])).not.toBe(first);
    const late = expect(worker.call("slow", [10_000])).rejects.toThrow("took too long");
    await worker.reset(new Error("took too long"));
    await late;
    expect(await worker.call("slow", [0])).toBe("done");
    const named = start({ lostError: (cause) => new ApiError("unavailable", { reason: "Try again." }, cause) });
    await expect(named.call("exit", [])).rejects.toMatchObject({ code: "unavailable", cause: expect.any(Error) });
  });

  it("finishes its calls and its onStop before it stops", async () => {
    const open = worker.call("slow", [100]);
    await worker.stop();
    expect(await open).toBe("done");
    expect(stopped[0]).toBe(1);
    await expect(worker.call("slow", [0])).rejects.toThrow("was stopped");
    await start().stop();
    expect(stopped[0]).toBe(1);
  });
});
