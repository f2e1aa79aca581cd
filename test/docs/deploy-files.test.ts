import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type KubernetesObject, loadAllYaml, loadYaml } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import type { Setting } from "../../src/config/settings/setting.ts";
import { SETTINGS } from "../../src/config/settings/settings.ts";
import { DEPLOY, readCompose, type Yaml } from "../support/compose-file.ts";

const read = (file: string) => readFileSync(join(DEPLOY, file), "utf8");
const FILES = globSync("**/*.{yaml,tpl}", { cwd: DEPLOY }).sort();

const VARIABLES = new Set(
  Object.values<Record<string, Setting<unknown>>>(SETTINGS)
    .flatMap((section) => Object.values(section))
    .flatMap(({ env }) => env ?? []),
);
const SECRET_VARIABLES = ["THREADMILL_DATABASE_URL", "THREADMILL_ENCRYPTION_KEYS", "API_KEYS"];

/** Time for runs, again for their step, and for their return to the queue. */
const drain_s = () => (2 * SETTINGS["Graph hosts and runs"].shutdown_grace_ms.read(undefined, "")) / 1_000 + 5;

describe("the files of deploy/", () => {
  it.each(FILES)("name only settings that exist: %s", (file) => {
    const names = [...read(file).matchAll(/\b(THREADMILL_[A-Z_]+|N_JOBS_PER_WORKER|BG_JOB_\w+)\b/g)].map(
      ([name]) => name,
    );
    expect(names.filter((name) => !VARIABLES.has(name))).toEqual([]);
  });

  it.each(FILES)("contain no secret: %s", (file) => {
    const values = [
      ...read(file).matchAll(/^\s+(THREADMILL_DATABASE_URL|THREADMILL_ENCRYPTION_KEYS|API_KEYS|\w*PASSWORD): *(.*)$/gm),
    ];
    for (const [, name, value] of values)
      expect([name, value]).toEqual([name, expect.stringMatching(/^(""|".*\$\{\w+:\?.*")$/)]);
  });
});

describe("deploy/compose.yaml", () => {
  const compose = readCompose();
  const { postgres, api, worker } = compose.services;

  it("starts Postgres, an API process and two workers, each checked and without privileges", () => {
    expect(Object.keys(compose.services)).toEqual(["postgres", "api", "worker"]);
    expect([api.deploy?.replicas ?? 1, worker.deploy.replicas]).toEqual([1, 2]);
    for (const service of Object.values<Yaml>(compose.services)) {
      expect(service.healthcheck.test[0]).toBe("CMD");
      expect(service.user).toMatch(/^(1000:1000|postgres)$/);
    }
    for (const [role, service] of Object.entries({ api, worker })) {
      expect(service).toMatchObject({
        init: true,
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
      expect(service.depends_on).toEqual({ postgres: { condition: "service_healthy" } });
      expect(service.environment).toMatchObject({ THREADMILL_ROLE: role });
      expect(Object.keys(service.environment)).toEqual(expect.arrayContaining(SECRET_VARIABLES));
      expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThan(drain_s());
      // The folders that the service writes to.
      const writable = [...service.tmpfs, ...service.volumes].map(
        (mount: string) => /(?:^|:)(\/\w+)(?=:|$)/.exec(mount)?.[1],
      );
      expect(writable).toEqual(expect.arrayContaining(["/tmp", "/data", "/project"]));
    }
    expect(worker.ports).toBeUndefined();
  });

  it("keeps its data in named volumes", () => {
    const named = [...postgres.volumes, ...api.volumes].map((mount: string) => mount.split(":")[0]);
    for (const name of Object.keys(compose.volumes)) expect(named).toContain(name);
  });
});

describe("deploy/kubernetes", () => {
  const objectsIn = (file: string): Yaml[] => loadAllYaml(read(`kubernetes/${file}`)) as KubernetesObject[];
  const kustomization: Yaml = loadYaml(read("kubernetes/kustomization.yaml"));
  const all = readdirSync(join(DEPLOY, "kubernetes"))
    .filter((name) => name !== "kustomization.yaml")
    .flatMap(objectsIn);
  const named = (kind: string, name: string): Yaml =>
    all.find((object) => object.kind === kind && object.metadata.name === name);

  it("applies all files but the template of the Secret and that of KEDA", () => {
    const files = readdirSync(join(DEPLOY, "kubernetes")).filter((name) => name !== "kustomization.yaml");
    expect(files.filter((name) => !kustomization.resources.includes(name))).toEqual([
      "keda.yaml",
      "secret.template.yaml",
    ]);
    expect(kustomization.resources.filter((name: string) => !files.includes(name))).toEqual([]);
  });

  it("has only fields that Kubernetes has", () => {
    for (const file of kustomization.resources as string[]) {
      // The client library drops the fields that the type of an object does not have, and keeps objects of unknown types as they are.
      const untyped = loadAllYaml(read(`kubernetes/${file}`).replaceAll(/^kind: /gm, "kind: Untyped"));
      const known = objectsIn(file).map((object) => ({ ...object, kind: `Untyped${object.kind}` }));
      expect(JSON.parse(JSON.stringify(known))).toEqual(untyped);
    }
  });

  it("has the namespace of each object, and no object twice", () => {
    const namespaces = all.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.name);
    const others = all.filter(({ kind }) => kind !== "Namespace");
    for (const { metadata } of others) expect(namespaces).toContain(metadata.namespace);
    const keys = all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it.each(["api", "worker"])("runs the role %s without privileges, with probes and limits, and drains it", (role) => {
    const { spec } = named("Deployment", `threadmill-${role}`);
    const pod = spec.template.spec;
    const [container, ...others] = pod.containers;
    expect(others).toEqual([]);
    expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
    expect(container.image).toBe(kustomization.images[0].name);
    const settings = Object.fromEntries(container.env.map(({ name, value }: Yaml) => [name, value]));
    expect(settings.THREADMILL_ROLE).toBe(role);
    for (const value of Object.values(settings)) expect(value).toEqual(expect.any(String));
    expect(container.envFrom).toEqual([{ secretRef: { name: "threadmill" } }]);

    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
    expect(pod.securityContext.seccompProfile).toEqual({ type: "RuntimeDefault" });
    expect(pod).toMatchObject({ enableServiceLinks: false, shareProcessNamespace: true });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(container.volumeMounts.map(({ mountPath }: Yaml) => mountPath)).toEqual(["/data", "/tmp"]);
    const volumes = container.volumeMounts.map(({ name }: Yaml) => ({ name, emptyDir: {} }));
    expect(pod.volumes).toEqual(volumes);
    expect(settings.HOME).toBe("/tmp");

    for (const probe of [container.startupProbe, container.readinessProbe])
      expect(probe.httpGet).toEqual({ path: "/ok", port: "http" });
    expect(container.livenessProbe.tcpSocket).toEqual({ port: "http" });
    expect(container.resources.requests).toEqual({ cpu: expect.any(String), memory: expect.any(String) });
    expect(container.resources.limits).toEqual({ memory: expect.any(String) });
    const waits_s = Number(container.lifecycle?.preStop.exec.command[1] ?? 0);
    expect(pod.terminationGracePeriodSeconds - waits_s).toBeGreaterThan(drain_s());
  });

  it("routes clients to the API only, and keeps one pod of each role during disruptions", () => {
    const services = all.filter(({ kind }) => kind === "Service");
    expect(services.map(({ metadata }) => metadata.name)).toEqual(["threadmill-api"]);
    const labelsOf = (role: string) => named("Deployment", `threadmill-${role}`).spec.selector.matchLabels;
    expect(services[0].spec.selector).toEqual(labelsOf("api"));
    for (const role of ["api", "worker"])
      expect(named("PodDisruptionBudget", `threadmill-${role}`).spec.selector.matchLabels).toEqual(labelsOf(role));
  });

  it("gives the API alone the rights that docs/control-plane.md lists, in the namespace of the instances", () => {
    const page = readFileSync(join(DEPLOY, "../docs/control-plane.md"), "utf8");
    const [, documented = ""] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(page) ?? [];
    const role = named("Role", "threadmill");
    expect(role.rules).toEqual((loadYaml(documented) as Yaml).rules);
    const binding = named("RoleBinding", "threadmill");
    expect(binding.subjects).toEqual([{ kind: "ServiceAccount", name: "threadmill-api", namespace: "threadmill" }]);
    const env = named("Deployment", "threadmill-api").spec.template.spec.containers[0].env;
    expect(env).toContainEqual({ name: "THREADMILL_KUBERNETES_NAMESPACE", value: role.metadata.namespace });
    const pods = ["api", "worker"].map((name) => named("Deployment", `threadmill-${name}`).spec.template.spec);
    expect(pods.map((pod) => pod.serviceAccountName)).toEqual(["threadmill-api", undefined]);
    expect(pods[1].automountServiceAccountToken).toBe(false);
  });

  it("has a Secret without values, and scales the workers by the database that it names", () => {
    const { stringData } = named("Secret", "threadmill");
    expect(Object.entries(stringData)).toEqual(SECRET_VARIABLES.map((name) => [name, ""]));
    const { spec } = named("ScaledObject", "threadmill-worker");
    expect(spec.scaleTargetRef).toEqual({ name: "threadmill-worker" });
    expect(SECRET_VARIABLES).toContain(spec.triggers[0].metadata.connectionFromEnv);
  });
});
