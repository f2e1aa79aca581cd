import {
  type BuildIo,
  type BuildSpec,
  type DeployDriver,
  DeployError,
  type InstanceCondition,
  type InstanceRef,
  type InstanceSpec,
} from "../../src/control-plane/drivers/driver.ts";
import { ListenerUnavailableError } from "../../src/control-plane/drivers/listener/connections.ts";

/**
 * A driver's processes are entries of a map here. How a revision behaves stands in its git ref, or in the name of its image:
 * `build-` or `run-` with `held` (until it is released), `trouble` (the driver fails each time), `flaky` (... twice); `build-fails`,
 * `run-refused` (what the user brought cannot be built or started), `run-never` (gets ready), `run-dies`, `run-falls` (dies once),
 * `run-once` (dies when it is deployed again).
 */
interface Running {
  ref: InstanceRef;
  order: InstanceSpec;
}

/** Stands for the world outside: it survives the service, and answers in the same turn. */
export class MemoryDriver implements DeployDriver {
  readonly kind = "memory";
  readonly running = new Map<string, Running>();
  /** Deployments of which something is left. */
  readonly remains = new Set<string>();
  /** By deployment, the roll-out whose instances execute runs. */
  readonly active_rollouts = new Map<string, number>();
  /** By deployment, the artifacts that were left when old ones were last removed. */
  readonly kept = new Map<string, readonly string[]>();
  readonly stopped: { instance_id: string; grace_ms: number }[] = [];
  readonly envs: Readonly<Record<string, string>>[] = [];
  readonly #held: { revision_id: string; goOn: () => void }[] = [];
  readonly #released = new Set<string>();
  readonly #attempts = new Map<string, number>();
  #starts = 0;

  async build({ source, revision_id, deployment_id, env }: BuildSpec, { log, signal }: BuildIo) {
    this.remains.add(deployment_id);
    this.envs.push(env);
    const ref = source.kind === "git" ? (source.ref ?? "") : source.file;
    log({ at: Date.now(), level: "INFO", message: `building ${ref}` });
    if (ref.includes("build-fails")) throw new DeployError("langgraph.json names no graph.");
    if (ref.includes("build-trouble")) throw new Error("no more file descriptors");
    if (ref.includes("build-flaky") && this.#attempt(revision_id) <= 2) throw new Error("the registry is away");
    if (ref.includes("build-held")) await this.#hold(revision_id, signal);
    return { artifact: `built/${ref}` };
  }

  async ensure(order: InstanceSpec): Promise<InstanceRef> {
    const { instance_id, deployment_id, revision_id, artifact } = order;
    const there = this.running.get(instance_id);
    if (there) {
      there.order = order;
      return there.ref;
    }
    this.remains.add(deployment_id);
    if (artifact.includes("run-refused")) throw new DeployError("The port is taken.");
    if (artifact.includes("run-trouble")) throw new Error("no more processes");
    if (artifact.includes("run-unreachable") && this.#attempt(instance_id) <= 8)
      throw new ListenerUnavailableError("the-listener");
    if (artifact.includes("run-flaky") && this.#attempt(instance_id) <= 2) throw new Error("no more memory");
    const start = ++this.#starts;
    const ref = {
      instance_id,
      deployment_id,
      revision_id,
      handle: `pid ${start}`,
      address: `http://127.0.0.1:${start}`,
    };
    if (!this.#diesAtOnce(order)) this.running.set(instance_id, { ref, order });
    return ref;
  }

  async probe({ instance_id, handle }: InstanceRef): Promise<InstanceCondition> {
    return this.running.get(instance_id)?.ref.handle === handle
      ? { state: "running" }
      : { state: "ended", reason: "the process exited with status 1" };
  }

  async stop({ instance_id }: InstanceRef, { grace_ms }: { grace_ms: number }): Promise<void> {
    if (this.running.delete(instance_id)) this.stopped.push({ instance_id, grace_ms });
  }

  async list(): Promise<InstanceRef[]> {
    return [...this.running.values()].map(({ ref }) => ref);
  }

  async prune({ deployment_id, keep }: { deployment_id: string; keep: readonly string[] }): Promise<void> {
    this.kept.set(deployment_id, keep);
  }

  async remove({ deployment_id }: { deployment_id: string }): Promise<void> {
    this.active_rollouts.delete(deployment_id);
    this.remains.delete(deployment_id);
  }

  /** What an instance answers to /ok. */
  async ok(address: string): Promise<string | undefined> {
    const found = [...this.running.values()].find(({ ref }) => ref.address === address);
    if (!found) return "could not be reached";
    const { artifact, revision_id } = found.order;
    if (artifact.includes("run-never")) return "returned status 503";
    return artifact.includes("run-held") && !this.#released.has(revision_id) ? "returned status 503" : undefined;
  }

  /** What an instance does when it is told to take over. */
  async activate(address: string): Promise<void> {
    const found = [...this.running.values()].find(({ ref }) => ref.address === address);
    if (!found) throw new Error("could not be reached");
    const { deployment_id, env } = found.order;
    const rollout = Number(env.THREADMILL_ROLLOUT);
    this.active_rollouts.set(deployment_id, Math.max(rollout, this.active_rollouts.get(deployment_id) ?? 0));
  }

  /** Lets the held build and the held instances of a revision go on. */
  release(revision_id: string): void {
    this.#released.add(revision_id);
    for (const one of this.#held) if (one.revision_id === revision_id) one.goOn();
  }

  /** Ends an instance as if it had crashed. */
  kill(instance_id: string): void {
    this.running.delete(instance_id);
  }

  #diesAtOnce({ artifact, revision_id, instance_id }: InstanceSpec): boolean {
    if (artifact.includes("run-falls")) return this.#attempt(instance_id) === 1;
    if (artifact.includes("run-once")) return this.#attempt(revision_id) > 1;
    return artifact.includes("run-dies");
  }

  #attempt(id: string): number {
    const attempt = (this.#attempts.get(id) ?? 0) + 1;
    this.#attempts.set(id, attempt);
    return attempt;
  }

  async #hold(revision_id: string, signal: AbortSignal): Promise<void> {
    if (this.#released.has(revision_id)) return;
    await new Promise<void>((resolve, reject) => {
      this.#held.push({ revision_id, goOn: resolve });
      if (signal.aborted) reject(new Error("aborted"));
      signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  }
}
