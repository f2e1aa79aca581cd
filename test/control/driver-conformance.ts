import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DeployDriver, InstanceRef, InstanceSpec, LogLine } from "../../src/control-plane/drivers/driver.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { until } from "../support/until.ts";

/** What a driver brings to its tests. */
export interface DriverWorld {
  driver(): DeployDriver;
  /** Ends the service and starts another on the same machine: what was started goes on. */
  restart(): Promise<void>;
  /** Something to run that serves the graph of deployed-project.ts; that of `broken` names a graph that cannot be loaded. */
  artifact(which: "good" | "broken", deployment_id: string): Promise<string>;
  close(): Promise<void>;
}

/** What the reconciler counts on, of any driver. */
export function describeDriver(name: string, open: () => Promise<DriverWorld>): void {
  describe(`the driver ${name}`, () => {
    let world: DriverWorld;
    const deployment_id = randomUUID();
    beforeAll(async () => {
      world = await open();
    }, 120_000);
    afterAll(async () => {
      for (const ref of await world.driver().list()) await world.driver().stop(ref, { grace_ms: 0 });
      await world.close();
    }, 120_000);

    const specFor = async (which: "good" | "broken" = "good", more: Partial<InstanceSpec> = {}) => {
      const lines: LogLine[] = [];
      const order = instanceSpec({
        deployment_id,
        artifact: await world.artifact(which, deployment_id),
        env: { GREETING: "hello" },
        log: (line) => lines.push(line),
        ...more,
      });
      return { order, lines, messages: () => lines.map(({ message }) => message) };
    };

    it("starts an instance that serves the agent server to callers with its key", async () => {
      const { order } = await specFor();
      const ref = await world.driver().ensure(order);
      await answersOk(ref);

      expect(await world.driver().probe(ref)).toEqual({ state: "running" });
      expect((await fetch(`${ref.address}/threads`, { method: "POST", body: "{}" })).status).toBe(401);
      const { env } = await ask(ref, order, {});
      expect(env).toMatchObject({ GREETING: "hello" });
      await world.driver().stop(ref, { grace_ms: 10_000 });
    });

    it("attaches to the running instance when it is requested again, even by two concurrent requests", async () => {
      const { order } = await specFor();
      const [first, second] = await Promise.all([world.driver().ensure(order), world.driver().ensure(order)]);
      await answersOk(first);
      expect(second).toEqual(first);
      expect(await world.driver().ensure(order)).toEqual(first);
      expect((await world.driver().list()).filter((ref) => ref.instance_id === order.instance_id)).toEqual([first]);
      await world.driver().stop(first, { grace_ms: 10_000 });
    });

    it("reports what an instance writes, line by line", async () => {
      const { order, messages } = await specFor();
      const ref = await world.driver().ensure(order);
      await answersOk(ref);
      await ask(ref, order, { print: ["first line", "zweite Zeile, äöü"] });
      await until("the lines are received", async () => messages().includes("zweite Zeile, äöü"));
      expect(messages().filter((message) => / line|Zeile/.test(message))).toEqual(["first line", "zweite Zeile, äöü"]);
      await world.driver().stop(ref, { grace_ms: 10_000 });
    });

    it("finds instances after a restart of the service, and continues their logs where they stopped", async () => {
      const before = await specFor();
      const ref = await world.driver().ensure(before.order);
      await answersOk(ref);
      await ask(ref, before.order, { print: ["said before"] });
      await until("the line is received", async () => before.messages().includes("said before"));
      await world.restart();
      await ask(ref, before.order, { print: ["said meanwhile"] });

      expect(await world.driver().list()).toContainEqual(ref);
      const after = await specFor("good", before.order);
      const received: string[] = [];
      expect(await world.driver().ensure({ ...after.order, log: ({ message }) => received.push(message) })).toEqual(
        ref,
      );
      await until("the line is received", async () => received.includes("said meanwhile"));
      expect([...before.messages(), ...received].filter((message) => message.startsWith("said"))).toEqual([
        "said before",
        "said meanwhile",
      ]);
      await world.driver().stop(ref, { grace_ms: 10_000 });
      expect(await world.driver().probe(ref)).toMatchObject({ state: "ended" });
    });

    it("reports an instance that has exited as ended, and starts it again on request", async () => {
      const { order, messages } = await specFor();
      const ref = await world.driver().ensure(order);
      await answersOk(ref);
      await ask(ref, order, { print: ["the last words"], exit: true });
      await until("it is gone", async () => (await world.driver().probe(ref)).state === "ended");
      expect(await world.driver().probe(ref)).toEqual({ state: "ended", reason: expect.stringMatching(/SIGKILL|137/) });

      const again = await world.driver().ensure(order);
      expect(again.handle).not.toBe(ref.handle);
      await answersOk(again);
      expect(await world.driver().probe(again)).toEqual({ state: "running" });
      await world.driver().stop(again, { grace_ms: 10_000 });
      expect(messages()).toContain("the last words");
    });

    it("reports why an instance refused to start, in terms of the source", async () => {
      const { order } = await specFor("broken");
      const ref = await world.driver().ensure(order);
      await until("it is gone", async () => (await world.driver().probe(ref)).state === "ended");
      const refusal = await world
        .driver()
        .ensure(order)
        .then(
          () => "",
          (error: Error) => error.message,
        );
      expect(refusal).toMatch(/^graphs\.agent could not be loaded \(.*\)\. Fix the code and deploy again\.$/);
      expect(refusal).not.toContain("/builds/");
      await world.driver().stop(ref, { grace_ms: 0 });
    });

    it("stops an instance repeatedly without an error, and removes everything of a deployment", async () => {
      const { order } = await specFor();
      const ref = await world.driver().ensure(order);
      await answersOk(ref);
      await world.driver().stop(ref, { grace_ms: 10_000 });
      await world.driver().stop(ref, { grace_ms: 10_000 });
      await expect(fetch(`${ref.address}/ok`)).rejects.toThrow();
      const removal = { deployment_id, artifacts: [order.artifact] };
      await world.driver().remove(removal);
      await world.driver().remove(removal);
      expect((await world.driver().list()).filter((one) => one.deployment_id === deployment_id)).toEqual([]);
    });
  });
}

/** Waits until an instance takes requests. */
export async function answersOk({ address }: InstanceRef): Promise<void> {
  await until("the instance answers", () =>
    fetch(`${address}/ok`, { signal: AbortSignal.timeout(20_000) }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
}

interface AgentReply {
  env: Record<string, string>;
  /** The environment that its process was started with. */
  whole: string[];
  pid: number;
  type: string;
}

/** Runs the graph of deployed-project.ts. */
export async function ask(
  { address }: InstanceRef,
  { api_key }: Pick<InstanceSpec, "api_key">,
  input: { print?: string[]; exit?: boolean },
): Promise<AgentReply> {
  const answer = await fetch(`${address}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": api_key },
    body: JSON.stringify({ assistant_id: "agent", input }),
  });
  if (answer.status !== 200) throw new Error(await answer.text());
  return ((await answer.json()) as { answer: AgentReply }).answer;
}
