import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { LocalHints } from "../../src/platform/database/hints.ts";
import { pollUntil } from "../../src/platform/database/poll-until.ts";
import { Semaphore } from "../../src/platform/lib/semaphore.ts";
import { Signal } from "../../src/platform/lib/signal.ts";

const NEVER_MS = 1e9;

/** Whether a promise has settled after the events that are due. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return (await Promise.race([promise.then(() => true), sleep(5).then(() => false)])) as boolean;
}

describe("a signal", () => {
  it("ends a wait by a notification, and keeps one that comes without a waiter for one wait", async () => {
    const signal = new Signal();
    const wait = signal.wait();
    expect(await isSettled(wait)).toBe(false);
    signal.notify();
    await wait;
    signal.notify();
    signal.notify();
    await signal.wait();
    expect(await isSettled(signal.wait())).toBe(false);
  });

  it("discards with a reset what came before it, and nothing that comes after it", async () => {
    const signal = new Signal();
    signal.notify();
    signal.reset();
    const wait = signal.wait();
    expect(await isSettled(wait)).toBe(false);
    signal.notify();
    await wait;
    signal.reset();
    signal.notify();
    await signal.wait(NEVER_MS);
  });

  it("ends a wait after its timeout, by the timers of the process or by an injected wait", async () => {
    await new Signal().wait(1);
    const waits: number[] = [];
    const signal = new Signal({
      wait: async (ms, ended) => {
        waits.push(ms);
        if (ms > 1) await new Promise<void>((resolve) => ended.addEventListener("abort", () => resolve()));
      },
    });
    await signal.wait(1);
    const wait = signal.wait(NEVER_MS);
    expect(await isSettled(wait)).toBe(false);
    signal.notify();
    await wait;
    signal.notify();
    await signal.wait(7);
    expect(waits).toEqual([1, NEVER_MS]);
  });

  it("never blocks after an abort, and has one listener until it is closed", async () => {
    const { signal: abort, abort: end } = bound(new AbortController());
    const signal = new Signal({ abort });
    for (let i = 0; i < 3; i++) {
      const wait = signal.wait();
      signal.notify();
      await wait;
      expect(getEventListeners(abort, "abort")).toHaveLength(1);
    }
    const wait = signal.wait();
    end();
    await wait;
    signal.reset();
    await signal.wait();
    signal.close();
    expect(getEventListeners(abort, "abort")).toHaveLength(0);
    await new Signal({ abort }).wait();
  });
});

const bound = (controller: AbortController) => ({ signal: controller.signal, abort: () => controller.abort() });

describe("polling until there is a result", () => {
  const poll = (read: () => Promise<string | undefined>, options: object = {}) => {
    const hints = new LocalHints();
    const isRelevant = (hint: { thread_id: string }) => hint.thread_id === "mine";
    const found = pollUntil(read, { hints, kind: "thread", isRelevant, poll_ms: NEVER_MS, ...options });
    return { found, hint: (thread_id: string) => hints.emit({ kind: "thread", thread_id }) };
  };

  it("reads at once, and again at each relevant hint, including one that comes during a read", async () => {
    let reads = 0;
    const { found, hint } = poll(async () => {
      if (++reads === 2) hint("mine");
      return reads === 3 ? "found" : undefined;
    });
    await sleep(5);
    hint("other");
    expect(await isSettled(found)).toBe(false);
    expect(reads).toBe(1);
    hint("mine");
    expect(await found).toBe("found");
  });

  it("reads from time to time, up to its timeout", async () => {
    let reads = 0;
    const { found } = poll(async () => void reads++, { poll_ms: 1, max_poll_ms: 4, timeout_ms: 100 });
    expect(await found).toBeUndefined();
    expect(reads).toBeGreaterThan(5);
  });

  it("ends without another read when it is aborted", async () => {
    let reads = 0;
    const { signal: abort, abort: end } = bound(new AbortController());
    const { found } = poll(async () => void reads++, { abort });
    await sleep(5);
    end();
    expect(await found).toBeUndefined();
    expect(reads).toBe(1);
    expect(getEventListeners(abort, "abort")).toHaveLength(0);
  });
});

describe("a semaphore", () => {
  it("gives its slots in order, and none to a caller that is aborted while it waits", async () => {
    const semaphore = new Semaphore(2);
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const never = new AbortController().signal;
    const { signal: abort, abort: end } = bound(new AbortController());
    const use = (name: string, signal = never) =>
      semaphore.use(signal, async () => {
        begun.push(name);
        await new Promise<void>((resolve) => ends.set(name, resolve));
        if (name === "a") throw new Error("a failed");
      });
    const a = use("a");
    void use("b");
    const c = use("c", abort);
    const d = use("d");
    await sleep(1);
    expect(begun).toEqual(["a", "b"]);
    end();
    await c;
    ends.get("a")?.();
    await expect(a).rejects.toThrow("a failed");
    await sleep(1);
    expect(begun).toEqual(["a", "b", "d"]);
    ends.get("d")?.();
    await d;
    void use("e");
    await sleep(1);
    expect(begun).toEqual(["a", "b", "d", "e"]);
    await use("f", abort);
    expect(begun).not.toContain("f");
    expect(getEventListeners(abort, "abort")).toHaveLength(0);
  });
});
