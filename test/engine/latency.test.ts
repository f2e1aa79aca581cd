import { describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { sharing } from "./sharing.ts";

const CONFIG = "test/graphs/shared/langgraph.json";
/** Without hints, other processes read new events every 200 ms. */
const POLL_MS = 200;

/** Roles need Postgres. */
describe.runIf(databases.includes("postgres"))("processes with different roles", () => {
  const shared = sharing("postgres");

  it("pass the first event of a run on without waiting for a poll", async () => {
    const [api] = await Promise.all([
      shared.start(CONFIG, {}, ["--role", "api"]),
      shared.start(CONFIG, {}, ["--role", "worker"]),
    ]);
    const first_ms = async () => {
      const began = performance.now();
      const response = await fetch(`${api.url}/runs/stream`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ assistant_id: "steps", input: {}, stream_mode: ["custom"] }),
      });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      let [text, decoder] = ["", new TextDecoder()];
      while (!text.includes("event: custom")) text += decoder.decode((await reader.read()).value, { stream: true });
      const ms = performance.now() - began;
      while (!(await reader.read()).done);
      return ms;
    };
    await first_ms();
    const times: number[] = [];
    for (let i = 0; i < 25; i++) times.push(await first_ms());
    times.sort((a, b) => a - b);
    expect(times[12]).toBeLessThan(POLL_MS / 2);
  });
});
