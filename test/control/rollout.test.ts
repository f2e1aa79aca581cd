import { randomUUID } from "node:crypto";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { DeployedService } from "./deployed-service.ts";
import { Load, OpenStream, projectOf, runOn, whatIsMissing } from "./load.ts";

const STREAMS = 20;

describe.each(databases)("a deployment under load on %s", (name) => {
  let service: DeployedService;
  let first: string;
  let second: string;
  const old_thread = randomUUID();
  const new_thread = randomUUID();
  beforeAll(async () => {
    service = await DeployedService.start(name, {
      THREADMILL_DEPLOY_DEADLINE: "30s",
      // On Postgres replaced instances go by this.
      THREADMILL_DEPLOY_DRAIN: "60s",
    });
    first = await service.deploy(projectOf("one"));
    await service.becomes(first, "DEPLOYED");
  }, 300_000);
  afterAll(() => service.close(), 300_000);

  /** What the load and streams see of a change, at which none of them may fail. */
  const under = async (change: () => Promise<void>, version: string) => {
    const gate = join(service.database.data_dir, randomUUID());
    const load = new Load(service);
    const streams = Array.from({ length: STREAMS }, () => new OpenStream(service, gate));
    await Promise.all(streams.map(({ begun }) => begun));
    await change();
    // Some of what comes after the change.
    const answered = load.versions.length;
    await service.holds("it goes on", async () => load.versions.length > answered + 20 || load.failures.length > 0);
    writeFileSync(gate, "");
    const ended = await Promise.allSettled(streams.map((stream) => stream.events()));
    const rate = await load.stop();
    const broken = ended.flatMap((one) =>
      one.status === "fulfilled" ? (whatIsMissing(one.value, version) ?? []) : [String(one.reason)],
    );
    console.info(`${name}: ${load.requests} requests, ${rate}/s, slowest ${load.slowest_ms} ms`);
    expect({ failures: load.failures, broken }).toEqual({ failures: [], broken: [] });
    return load;
  };

  it("gets a new revision, and no request fails and no stream is cut", async () => {
    expect(await runOn(service, old_thread)).toEqual(["one"]);
    const load = await under(async () => {
      second = await service.deploy(projectOf("two"));
      await service.becomes(second, "DEPLOYED");
    }, "one");
    expect([...new Set(load.versions)]).toEqual(["one", "two"]);
    expect(await runOn(service, old_thread)).toEqual(["one", "two"]);
    expect(await runOn(service, new_thread)).toEqual(["two"]);
  }, 400_000);

  // No query decides these.
  it.runIf(name === "sqlite").each([
    [
      "whose graph does not load",
      projectOf("three", "import 'a-package-that-nobody-has';"),
      /graphs\.agent could not be loaded/,
    ],
    [
      "that never answers /ok",
      projectOf("four", "await new Promise(() => setInterval(() => 0, 1000));"),
      /The instances were not ready after \d+ s\./,
    ],
  ])(
    "keeps its revision when it gets one %s, which fails with a sentence",
    async (_, files, sentence) => {
      const load = await under(async () => {
        const revision_id = await service.deploy(files);
        expect(await service.becomes(revision_id, "DEPLOY_FAILED")).toMatch(sentence);
      }, "two");
      expect([...new Set(load.versions)]).toEqual(["two"]);
      expect(await service.deployment()).toMatchObject({ active_revision_id: second });
    },
    400_000,
  );

  it("goes back to a revision without building it again", async () => {
    const builds = join(service.database.data_dir, "control", "builds", service.deployment_id);
    const built = () => readdirSync(builds).map((build) => [build, statSync(join(builds, build)).ino]);
    const before = built();
    const load = await under(async () => {
      await service.redeploy(first);
      await service.becomes(first, "DEPLOYED");
    }, "two");
    // Those of revisions that failed may have gone meanwhile.
    expect(before).toEqual(expect.arrayContaining(built()));
    expect(built().length).toBeGreaterThanOrEqual(2);
    expect([...new Set(load.versions)]).toEqual(["two", "one"]);
    expect(await runOn(service, new_thread)).toEqual(["two", "one"]);
    expect(await runOn(service, old_thread)).toEqual(["one", "two", "one"]);
  }, 400_000);
});
