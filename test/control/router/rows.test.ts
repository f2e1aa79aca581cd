import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { databases } from "../../support/databases.ts";
import { until } from "../../support/until.ts";
import { Instance } from "./instance.ts";
import { ADMIN, type DeploymentIds, type Process, World } from "./world.ts";

describe.each(databases)("the routes that a router reads from the rows of %s", (database) => {
  let world: World;
  const instances: Instance[] = [];
  beforeAll(async () => {
    world = await World.open(database, { router_wait_ms: 100 });
  });
  afterAll(async () => {
    await world.close();
    for (const instance of instances) await instance.stop();
  });

  const instance = async (name: string): Promise<Instance> => {
    const made = await Instance.start(name);
    instances.push(made);
    return made;
  };

  const ask = async ({ slug }: DeploymentIds, process: Process = world.process): Promise<string | number> => {
    const { status, text } = await process.send(`/deployments/${slug}/x`, { headers: ADMIN });
    return status === 200 ? text : status;
  };

  /** Asks until the answer is this one: hints take their time. */
  const untilAnswered = async (wanted: string | number, deployment: DeploymentIds, process = world.process) => {
    const end = Date.now() + 15_000;
    for (;;) {
      const answer = await ask(deployment, process);
      if (answer === wanted) return;
      if (Date.now() > end) throw new Error(`It is still ${answer}, and not ${wanted}.`);
    }
  };

  const update = (table: "deployments" | "instances" | "revisions", set: object, where: object) =>
    world.storage.database.write((tx) => {
      const [[column, value]] = Object.entries(where) as [[never, never]];
      return tx.run(
        tx.k
          .updateTable(table)
          .set(set as never)
          .where(column, "=", value),
      );
    });

  const hint = ({ deployment_id }: DeploymentIds) =>
    world.storage.database.hints.emit({ kind: "deployment", deployment_id });

  it("after a start: the ready instances of the active revision, with their keys", async () => {
    const [one, other, old, starting] = await Promise.all(["one", "other", "old", "starting"].map(instance));
    const deployment = await world.deployment();
    await world.serve(deployment, [old?.upstream as never], 1);
    await world.serve(deployment, [one?.upstream, other?.upstream, starting?.upstream] as never, 2);
    await update("instances", { state: "starting" }, { instance_id: starting?.upstream.instance_id });
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(deployment)));
    expect([...new Set(answers)].sort()).toEqual(["one", "other"]);
    expect(one?.last.headers["x-api-key"]).toBe(one?.upstream.api_key);
  });

  it("no instance of a rollout that is still in progress, even when the revision is the active one", async () => {
    const [serving, fresh] = [await instance("serving"), await instance("fresh")];
    const deployment = await world.deployment();
    await world.serve(deployment, [serving.upstream, fresh.upstream]);
    await update("instances", { rollout: 99 }, { instance_id: fresh.upstream.instance_id });
    await update("revisions", { status: "DEPLOYING", deploying_at: 99 }, { deployment_id: deployment.deployment_id });
    for (let n = 0; n < 4; n++) expect(await ask(deployment)).toBe("serving");
  });

  it("nothing of a deployment that is being deleted, that has no revision, or that is not there", async () => {
    const made = await instance("made");
    const deployment = await world.deployment();
    expect(await ask(deployment)).toBe(503);
    await world.serve(deployment, [made.upstream]);
    await untilAnswered("made", deployment);
    await update("deployments", { status: "AWAITING_DELETE" }, { deployment_id: deployment.deployment_id });
    hint(deployment);
    await untilAnswered(404, deployment);
    expect(await ask({ ...deployment, slug: "nothing" })).toBe(404);
  });

  it("an instance whose key cannot be decrypted receives no requests, the others receive all", async () => {
    const [sound, spoilt] = [await instance("sound"), await instance("spoilt")];
    const deployment = await world.deployment();
    await world.serve(deployment, [sound.upstream, spoilt.upstream]);
    await update("instances", { api_key: "spoilt" }, { instance_id: spoilt.upstream.instance_id });
    for (let n = 0; n < 4; n++) expect(await ask(deployment)).toBe("sound");
  });

  it("after a notification: the current instances, even for waiting requests", async () => {
    const patient = await World.open(database);
    const [one, other] = [await instance("1"), await instance("2")];
    const deployment = await patient.deployment();
    const waiting = ask(deployment, patient.process);
    await patient.process.send(`/deployments/${deployment.slug}/ok`, { headers: ADMIN });
    await patient.serve(deployment, [one.upstream], 1);
    expect(await waiting).toBe("1");
    await patient.serve(deployment, [other.upstream], 2);
    await untilAnswered("2", deployment, patient.process);
    await patient.close();
  });

  it("a slug that another deployment has taken over routes to that deployment", async () => {
    const [before, after] = [await instance("before"), await instance("after")];
    const deleted = await world.deployment({ slug: "again" });
    await world.serve(deleted, [before.upstream]);
    expect(await ask(deleted)).toBe("before");
    await world.storage.database.write((tx) =>
      tx.run(tx.k.deleteFrom("deployments").where("deployment_id", "=", deleted.deployment_id)),
    );
    hint(deleted);
    await untilAnswered(404, deleted);
    const next = await world.deployment({ slug: "again" });
    await world.serve(next, [after.upstream]);
    await untilAnswered("after", next);
  });

  it("are ignored while the reconciler of the same process has just set the route", async () => {
    const [rows, active] = [await instance("rows"), await instance("active")];
    const deployment = await world.deployment();
    await world.serve(deployment, [rows.upstream]);
    expect(await ask(deployment)).toBe("rows");
    world.router.activate(deployment.deployment_id, [active.upstream]);
    hint(deployment);
    for (let n = 0; n < 20; n++) expect(await ask(deployment)).toBe("active");
    await update("instances", { address: "http://127.0.0.1:1" }, { instance_id: rows.upstream.instance_id });
    hint(deployment);
    for (let n = 0; n < 20; n++) expect(await ask(deployment)).toBe("active");
  });

  it("are read again without a hint, after some time", async () => {
    const [one, other] = [await instance("one"), await instance("other")];
    const deployment = await world.deployment();
    await world.serve(deployment, [one.upstream]);
    expect(await ask(deployment)).toBe("one");
    await update("instances", { address: other.upstream.address }, { instance_id: one.upstream.instance_id });
    await untilAnswered("other", deployment);
  });

  it("a route of the reconciler takes precedence over a read that had already started", async () => {
    const active = await instance("active");
    const deployment = await world.deployment();
    const asked = ask(deployment);
    world.router.activate(deployment.deployment_id, [active.upstream]);
    expect(await asked).toBe("active");
    expect(await ask(deployment)).toBe("active");
  });

  it("requests are not counted if other processes also route: instances are then drained by time", () => {
    expect(world.router.inFlight(newId())).toBe(database === "sqlite" ? 0 : Number.POSITIVE_INFINITY);
  });
});

describe.runIf(databases.includes("postgres"))("two processes on one database", () => {
  it("follow each other's switches", async () => {
    const world = await World.open("postgres");
    const other = await world.another();
    const instances = await Promise.all(["1", "2", "3"].map((name) => Instance.start(name)));
    const deployment = await world.deployment();
    for (const [i, { upstream, name }] of instances.entries()) {
      // The reconciler of the one says so to its router, then to the rows.
      world.router.activate(deployment.deployment_id, [upstream]);
      await world.serve(deployment, [upstream], i + 1);
      for (const process of [world.process, other]) {
        const end = Date.now() + 15_000;
        for (;;) {
          const { text } = await process.send(`/deployments/${deployment.slug}/x`, { headers: ADMIN });
          if (text === name) break;
          expect(process).toBe(other);
          expect(Date.now()).toBeLessThan(end);
        }
      }
    }
    await world.close();
    for (const instance of instances) await instance.stop();
  });

  it("and use the rows again when the route of their own reconciler is outdated", async () => {
    let ahead_ms = 0;
    const world = await World.open("postgres", { clock: { now: () => Date.now() + ahead_ms } });
    const [active, rows] = await Promise.all(["active", "rows"].map((name) => Instance.start(name)));
    const deployment = await world.deployment();
    world.router.activate(deployment.deployment_id, [active?.upstream as never]);
    await world.serve(deployment, [rows?.upstream as never]);
    const ask = async () => (await world.process.send(`/deployments/${deployment.slug}/x`, { headers: ADMIN })).text;
    for (let n = 0; n < 10; n++) expect(await ask()).toBe("active");
    ahead_ms = 11_000;
    world.storage.database.hints.emit({ kind: "deployment", deployment_id: deployment.deployment_id });
    await until("the rows are believed", async () => (await ask()) === "rows");
    await world.close();
    await Promise.all([active?.stop(), rows?.stop()]);
  });
});
