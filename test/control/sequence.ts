import type { RevisionStatus } from "../../src/control-plane/storage/schema.ts";
import type { Fault } from "./life.ts";
import { type Command, Model } from "./model.ts";
import type { World } from "./world.ts";

/** Carries commands out, and holds after each of them what there is against what the model says. */
export class Sequence {
  readonly #world: World;
  #model = new Model();
  #id: string | undefined;
  #made = 0;
  /** Calls of the process that was started first. */
  calls = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** @param fault what befalls the first process */
  async run(commands: readonly Command[], fault?: Fault): Promise<void> {
    const first = this.#world.start(fault);
    for (const command of commands) {
      if (!(await this.#carryOut(command))) continue;
      await this.#settled(command);
    }
    await this.#settled({ name: "release", ref: "the end", pick: 0 });
    this.calls = first.life.calls;
  }

  async #carryOut({ name, ref, pick }: Command): Promise<boolean> {
    const world = this.#world;
    const model = this.#model;
    const choose = (from: readonly number[]) => from[pick % Math.max(1, from.length)];
    if (name === "create") return this.#create(ref);
    const id = this.#id;
    if (id === undefined || model.deleted) return false;
    if (name === "delete") {
      await world.remove(id);
      model.deleted = true;
      return true;
    }
    const n = choose(
      { release: model.held, interrupt: model.underWay, redeploy: model.redeployable, kill: [0] }[name] ?? [],
    );
    if (n === undefined) return false;
    const { revision_id } = (await world.get(id)).revisions[n] ?? { revision_id: "" };
    if (name === "release") {
      world.driver.release(revision_id);
      model.release(n);
    } else if (name === "interrupt") {
      await world.interrupt(id, revision_id);
      model.interrupt(n);
    } else if (name === "redeploy") {
      await world.redeploy(id, revision_id);
      model.redeploy(n);
    } else {
      const [instance_id] = [...world.driver.running.keys()];
      if (instance_id !== undefined) world.driver.kill(instance_id);
    }
    return true;
  }

  async #create(ref: string): Promise<boolean> {
    if (this.#id === undefined || this.#model.deleted) {
      this.#model = new Model();
      this.#id = await this.#world.deploy(`deployment-${++this.#made}`, ref);
    } else await this.#world.update(this.#id, ref);
    this.#model.create(ref);
    return true;
  }

  async #settled(command: Command): Promise<void> {
    let found = "";
    const wanted = JSON.stringify(this.#wanted());
    await this.#world
      .until(`${JSON.stringify(command)}: ${wanted}`, async () => {
        found = JSON.stringify(await this.#found());
        return found === wanted;
      })
      .catch((error: Error) => {
        throw new Error(`${error.message}\nfound: ${found}\nwanted: ${wanted}`);
      });
  }

  /** Where everything comes to rest: rows, instances, what runs, and what the router knows. */
  #wanted() {
    const { revisions, active, deleted } = this.#model;
    if (deleted || this.#id === undefined) return { running: [], remains: 0 };
    const fresh = revisions.flatMap(({ status }, n) => (status === "DEPLOYING" ? [n] : []));
    const serving = active === undefined ? [] : [active];
    return {
      statuses: revisions.map(({ status }) => status as RevisionStatus),
      active: active ?? null,
      instances: [...serving.map((n) => `${n} ready`), ...fresh.map((n) => `${n} starting`)].sort(),
      running: [...serving, ...fresh].sort(),
      executes: serving,
      routed: serving,
    };
  }

  async #found() {
    const world = this.#world;
    const view = this.#id === undefined ? undefined : await world.view(this.#id);
    const running = [...world.driver.running.values()];
    if (!view) return { running: running.map(({ ref }) => ref.instance_id), remains: world.driver.remains.size };
    const { deployment, revisions, instances } = view;
    const number = (id: string | null) => revisions.findIndex(({ revision_id }) => revision_id === id);
    const of = (instance_id: string) =>
      number(instances.find((instance) => instance.instance_id === instance_id)?.revision_id ?? null);
    const [process] = world.processes;
    const upstreams = process?.router.upstreams.get(deployment.deployment_id) ?? [];
    const isThere = ({ instance_id, address }: { instance_id: string; address: string }) =>
      world.driver.running.get(instance_id)?.ref.address === address;
    return {
      statuses: revisions.map(({ status }) => status),
      active: deployment.active_revision_id === null ? null : number(deployment.active_revision_id),
      instances: instances.map(({ revision_id, state }) => `${number(revision_id)} ${state}`).sort(),
      running: running.map(({ ref }) => of(ref.instance_id)).sort(),
      executes: instances.flatMap(({ rollout, revision_id }) =>
        rollout === world.driver.active_rollouts.get(deployment.deployment_id) ? [number(revision_id)] : [],
      ),
      routed: upstreams.map((upstream) => (isThere(upstream) ? of(upstream.instance_id) : "deleted")),
    };
  }
}
