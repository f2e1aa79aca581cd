import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isTerminal, REVISION_TRANSITIONS } from "../../src/control-plane/rollout/revision-transitions.ts";
import { IN_PROGRESS } from "../../src/control-plane/storage/revisions.ts";
import { databases } from "../support/databases.ts";
import { forbiddenTransitions, recordedTransitions, recordTransitions } from "./moves.ts";
import { ASKING, World } from "./world.ts";

const PAGE = readFileSync(resolve(import.meta.dirname, "../../docs/control-plane.md"), "utf8");

describe("docs/control-plane.md", () => {
  it("shows the transitions of the program", () => {
    const [, drawing = ""] = /```mermaid\n(stateDiagram-v2.*?)```/s.exec(PAGE) ?? [];
    const drawn = drawing
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line.includes("-->"));
    expect(drawn).toEqual(REVISION_TRANSITIONS.map(({ from, to, reason }) => `${from ?? "[*]"} --> ${to}: ${reason}`));
  });

  it("explains every status, and says which of them are final", () => {
    const statuses = [...new Set(REVISION_TRANSITIONS.map(({ to }) => to))];
    for (const status of statuses) {
      const [, final] = new RegExp(`^\\| \`${status}\` \\|.*\\| (yes|no) \\|$`, "m").exec(PAGE) ?? [];
      expect(final, status).toBe(isTerminal(status) ? "yes" : "no");
    }
  });
});

describe.each(databases)("the states of revisions on %s", (name) => {
  let world: World;
  beforeAll(async () => {
    world = await World.open(name);
    await recordTransitions(world);
  });
  beforeEach(() => world.clear());
  afterAll(() => world.close());

  /** Ends all processes, so that what is asked for meets the states in which a revision stays only for a moment. */
  const pause = async () => {
    for (const { reconciler } of world.processes) await reconciler.stop();
    world.processes = [];
  };

  async function goAllWays(): Promise<void> {
    const early = await world.deploy("early", "main");
    await world.interrupt(early, (await world.revision(early, 1)).revision_id);
    world.start();
    await world.become(early, "INTERRUPTED");

    const builds = await world.deploy("builds", "build-held");
    await world.become(builds, "BUILDING");
    const waits = await world.deploy("waits", "main");
    await world.become(waits, "AWAITING_BUILD");
    await world.interrupt(waits, (await world.revision(waits, 1)).revision_id);
    await world.become(waits, "INTERRUPTED");
    await world.update(builds, "build-fails");
    await world.update(builds, "build-fails-too");
    await world.interrupt(builds, (await world.revision(builds, 1)).revision_id);
    await world.become(builds, "INTERRUPTED", "SKIPPED", "BUILD_FAILED");

    const serves = await world.deploy("serves", "run-once");
    await world.become(serves, "DEPLOYED");
    const { revision_id } = await world.revision(serves, 1);
    await world.redeploy(serves, revision_id);
    await world.become(serves, "DEPLOY_FAILED");
    await pause();
    await world.redeploy(serves, revision_id);
    await world.interrupt(serves, revision_id);
    world.start();
    await world.become(serves, "INTERRUPTED");
    await world.redeploy(serves, revision_id);
    await world.become(serves, "DEPLOY_FAILED");

    const image = { source: "external_docker", source_config: { repo_url: undefined } } as const;
    const held = await world.deploy("held", "", {
      ...image,
      source_revision_config: { image_uri: "agents/run-held:1" },
    });
    await world.become(held, "DEPLOYING");
    const { deployments } = world;
    await deployments.patch(ASKING, held, { source_revision_config: { image_uri: "agents/main:2" } });
    await world.become(held, "DEPLOYING", "QUEUED");
    await world.interrupt(held, (await world.revision(held, 2)).revision_id);
    await world.become(held, "DEPLOYING", "INTERRUPTED");
    await deployments.patch(ASKING, held, { source_revision_config: { image_uri: "agents/main:3" } });
    await world.interrupt(held, (await world.revision(held, 1)).revision_id);
    await world.become(held, "INTERRUPTED", "INTERRUPTED", "DEPLOYED");

    await world.update(serves, "build-held");
    await world.become(serves, "DEPLOY_FAILED", "BUILDING");
    const elsewhere = {
      revision_source: "internal_docker",
      source_revision_config: { image_uri: "agents/main:4" },
    } as const;
    await deployments.patch(ASKING, serves, elsewhere);
    world.driver.release((await world.revision(serves, 2)).revision_id);
    await world.become(serves, "DEPLOY_FAILED", "DEPLOYED", "CREATE_FAILED");
    await deployments.patch(ASKING, serves, elsewhere);
    await world.become(serves, "DEPLOY_FAILED", "DEPLOYED", "CREATE_FAILED", "CREATE_FAILED");
  }

  it("change as the table says, in all of these ways and in no other", async () => {
    await goAllWays();
    const moves = await recordedTransitions(world);
    const seen = moves.filter(({ after }) => after !== "active").map((m) => `${m.before ?? "*"} > ${m.after}`);
    const listed = REVISION_TRANSITIONS.map(({ from, to }) => `${from ?? "*"} > ${to}`);
    expect([...new Set(seen)].sort()).toEqual(listed.sort());
    expect(moves.filter(({ after }) => after === "active").length).toBeGreaterThan(2);
    expect(forbiddenTransitions(moves)).toEqual([]);
  });

  it("distinguish terminal statuses from all others", () => {
    const left = new Set(
      REVISION_TRANSITIONS.filter(({ reason }) => reason !== "deployed again").map(({ from }) => from),
    );
    for (const { to } of REVISION_TRANSITIONS) expect(isTerminal(to), to).toBe(!left.has(to));
    for (const status of IN_PROGRESS) expect(isTerminal(status)).toBe(false);
  });
});
