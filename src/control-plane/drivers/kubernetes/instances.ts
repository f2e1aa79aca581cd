import { setTimeout as delay } from "node:timers/promises";
import type { V1Deployment, V1Pod } from "@kubernetes/client-node";
import type { Log } from "../../../platform/lib/log.ts";
import type { DeploymentDatabases } from "../deployment-data.ts";
import { DeployError, type InstanceCondition, type InstanceRef, type InstanceSpec, infoLine } from "../driver.ts";
import { LogFollower, positionFile, removePosition } from "../log-follower.ts";
import { lastErrorIn } from "../log-line.ts";
import type { Cluster } from "./cluster.ts";
import { deploymentManifest, objectName, refFrom, secretManifest, selectorOf, serviceManifest } from "./manifests.ts";
import {
  type ContainerRun,
  currentPod,
  deletionTimeOf,
  endOf,
  handleOf,
  isRunning,
  logOf,
  podStderrTail,
  runFrom,
  runOf,
} from "./pod.ts";

interface PodSettings {
  cluster: Cluster;
  service_id: string;
  pull_secrets: readonly string[];
  service_account: string | undefined;
  /** Folder of files that record up to which position the log of each instance is stored. */
  positions: string;
  databases: DeploymentDatabases;
  log: Log;
}

const POLL_MS = 200;
/** Time limit for Kubernetes to create a pod, and to delete it after its grace period. */
const CONTROLLER_TIMEOUT_MS = 30_000;

/** Runs each instance as a Deployment with one pod, which Kubernetes replaces when its node fails, and a Service as its address. */
export class Instances {
  readonly #settings: PodSettings;
  readonly #followers = new Map<string, LogFollower>();
  readonly #starting = new Map<string, Promise<InstanceRef>>();
  readonly #closing = new AbortController();

  constructor(settings: PodSettings) {
    this.#settings = settings;
  }

  /** @throws DeployError when the image or the settings are invalid, a rule of RBAC is missing, or the database cannot be used */
  ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const { instance_id } = spec;
    const running = this.#starting.get(instance_id);
    if (running) return running;
    const starting = this.#ensure(spec).finally(() => this.#starting.delete(instance_id));
    this.#starting.set(instance_id, starting);
    return starting;
  }

  async #ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const { cluster } = this.#settings;
    const name = objectName(spec.instance_id);
    const existing = await cluster.find("deployments", name);
    // While it is paused, the service process that created the Deployment has not created the other objects.
    if (!existing?.spec?.replicas || existing.spec.paused) return this.#create(spec);
    const pod = currentPod(await this.#pods(spec.instance_id));
    // The count starts at 0, so that an earlier permanent failure is found even if Kubernetes has restarted the container.
    const end = pod && endOf(pod, 0);
    if (!pod || !end) return this.#attach(existing, spec);
    if (!end.is_permanent && isRunning(pod)) return this.#attach(existing, spec);
    const stderr = end.is_permanent && end.exit_code !== undefined ? await podStderrTail(cluster, pod) : undefined;
    // A new pod starts without the back-off of Kubernetes. The next call tries again even after a permanent failure.
    await this.#unfollow(spec.instance_id, { last: true });
    await cluster.delete("pods", runOf(pod).pod, 0);
    if (!end.is_permanent) return this.#attach(existing, spec);
    throw new DeployError(stderr ? lastErrorIn(stderr) : `The instance failed: ${end.reason}.`);
  }

  /** Each call can be repeated, so a service process that ended between two of them is continued by the next one. */
  async #create(spec: InstanceSpec): Promise<InstanceRef> {
    const { cluster, databases, ...settings } = this.#settings;
    const database_url = await databases.of(spec);
    if (database_url === undefined)
      throw new DeployError(
        "Deployments on Kubernetes need a Postgres database, because pods have no persistent storage: start the service with DATABASE_URL.",
      );
    const input = { ...settings, spec, database_url, namespace: await cluster.namespace() };
    const owner = await cluster.apply("deployments", deploymentManifest(input, { paused: true }));
    await cluster.apply("secrets", secretManifest(input, owner));
    await cluster.apply("services", serviceManifest(input, owner));
    const deployment = await cluster.apply("deployments", deploymentManifest(input, { paused: false }));
    const ref = await this.#attach(deployment, spec);
    spec.log(infoLine(`Created pod ${runFrom(ref.handle).pod} (image ${spec.artifact}) at ${ref.address}.`));
    return ref;
  }

  async #attach(deployment: V1Deployment, spec: InstanceSpec): Promise<InstanceRef> {
    const { cluster } = this.#settings;
    const pod = await this.#newPod(spec.instance_id);
    const service = await cluster.find("services", objectName(spec.instance_id));
    const run = runOf(pod);
    await this.#follow(run, spec);
    return refFrom(deployment, service, handleOf(run));
  }

  /** @throws DeployError when Kubernetes does not create a pod, for example because of a quota or a Pod Security Standard */
  async #newPod(instance_id: string): Promise<V1Pod> {
    const pod = await this.#poll(CONTROLLER_TIMEOUT_MS, async () => currentPod(await this.#pods(instance_id)));
    if (pod) return pod;
    const name = objectName(instance_id);
    const found = await this.#settings.cluster.find("deployments", name);
    const failure = found?.status?.conditions?.find(({ type }) => type === "ReplicaFailure")?.message;
    if (failure !== undefined) throw new DeployError(`Kubernetes could not create a pod: ${failure}.`);
    throw new Error(`Kubernetes did not create a pod of the Deployment ${name} within ${CONTROLLER_TIMEOUT_MS} ms.`);
  }

  async probe({ instance_id, handle }: InstanceRef): Promise<InstanceCondition> {
    const { cluster } = this.#settings;
    const run = runFrom(handle);
    const pod = currentPod(await this.#pods(instance_id));
    if (!pod || runOf(pod).pod !== run.pod) return { state: "ended", reason: "the pod no longer exists" };
    const end = endOf(pod, run.restarts);
    if (!end) return { state: "running" };
    const stderr = end.exit_code === undefined ? "" : await podStderrTail(cluster, pod);
    return { state: "ended", reason: `${end.reason}${stderr === "" ? "" : `: ${stderr}`}` };
  }

  async stop({ instance_id }: InstanceRef, grace_ms: number): Promise<void> {
    const { cluster, positions } = this.#settings;
    await cluster.delete("deployments", objectName(instance_id));
    // The ReplicaSet can create another pod until Kubernetes has deleted it, so the pods are listed again.
    const deleted = new Set<string>();
    const is_deleted = await this.#poll(grace_ms + CONTROLLER_TIMEOUT_MS, async () => {
      const pods = await this.#pods(instance_id);
      for (const one of pods) {
        const { pod } = runOf(one);
        // The node is lost: it confirms no deletion, and Kubernetes keeps the pod until then.
        const isOverdue = deletionTimeOf(one) + CONTROLLER_TIMEOUT_MS < Date.now();
        if (deleted.has(pod) && !isOverdue) continue;
        deleted.add(pod);
        await cluster.delete("pods", pod, isOverdue ? 0 : Math.ceil(grace_ms / 1000));
      }
      return pods.length === 0;
    });
    if (!is_deleted) throw new Error(`The pods of the instance ${instance_id} were not deleted in time.`);
    await this.#unfollow(instance_id, { last: true });
    await removePosition(positions, instance_id);
  }

  /** Lists the instances of this service, or only those of a deployment. */
  async list(deployment_id?: string): Promise<InstanceRef[]> {
    const { cluster, service_id } = this.#settings;
    const own = selectorOf("service", service_id);
    const selector = deployment_id === undefined ? own : `${own},${selectorOf("deployment", deployment_id)}`;
    const [deployments, services, pods] = await Promise.all([
      cluster.list("deployments", selector),
      cluster.list("services", selector),
      cluster.list("pods", selector),
    ]);
    return deployments.map((deployment) => {
      const ref = refFrom(deployment, undefined, "");
      const name = objectName(ref.instance_id);
      const pod = currentPod(pods.filter((one) => refFrom(one, undefined, "").instance_id === ref.instance_id));
      const service = services.find(({ metadata }) => metadata?.name === name);
      return refFrom(deployment, service, pod ? handleOf(runOf(pod)) : "");
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#followers.keys()].map((instance_id) => this.#unfollow(instance_id, { last: false })));
  }

  #pods = (instance_id: string): Promise<V1Pod[]> =>
    this.#settings.cluster.list("pods", selectorOf("instance", instance_id));

  async #poll<T>(limit_ms: number, find: () => Promise<T>): Promise<T> {
    const end = performance.now() + limit_ms;
    for (;;) {
      const found = await find();
      if (found || performance.now() > end) return found;
      await delay(POLL_MS, undefined, { signal: this.#closing.signal });
    }
  }

  /** Sends the log of a run of the container to `spec.log`, starting at the stored position. */
  async #follow(run: ContainerRun, spec: InstanceSpec): Promise<void> {
    const { cluster, positions, log } = this.#settings;
    const { instance_id } = spec;
    await this.#unfollow(instance_id, { last: false });
    const onError = (error: unknown) => {
      log.warn({ error, instance_id }, "could not read the instance log");
      if (error instanceof DeployError) spec.log({ at: Date.now(), level: "WARNING", message: error.message });
    };
    const position = positionFile(positions, instance_id, handleOf(run));
    this.#followers.set(instance_id, new LogFollower(logOf(cluster, run, instance_id), position, spec, onError));
  }

  async #unfollow(instance_id: string, options: { last: boolean }): Promise<void> {
    const follower = this.#followers.get(instance_id);
    this.#followers.delete(instance_id);
    await follower?.stop(options);
  }
}
