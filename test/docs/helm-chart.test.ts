import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadAllYaml, loadYaml } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEPLOY, type Yaml } from "../support/compose-file.ts";

const CHART = join(DEPLOY, "helm/threadmill");
const RENDERER = join(import.meta.dirname, "../support/render-chart/main.go");
/** Where Debian has the sources of libraries. */
const GO = { GO111MODULE: "off", GOPATH: "/usr/share/gocode" };

const hasGo = existsSync("/usr/share/gocode/src/github.com/Masterminds/sprig") && existsSync("/usr/bin/go");
if (!hasGo)
  console.warn("\nThe Helm chart is not tested: apt-get install golang-go golang-github-masterminds-sprig-dev.\n");

const plain = (file: string): Yaml[] => loadAllYaml(readFileSync(join(DEPLOY, "kubernetes", file), "utf8"));
const kustomization: Yaml = loadYaml(readFileSync(join(DEPLOY, "kubernetes/kustomization.yaml"), "utf8"));
const VALUES: Yaml = loadYaml(readFileSync(join(CHART, "values.yaml"), "utf8"));
const RELEASE = { Name: "threadmill", Namespace: "threadmill" };

/** In the order of their kinds and names, and their variables in the order of their names. */
const sorted = (objects: Yaml[]): Yaml[] =>
  JSON.parse(JSON.stringify(objects))
    .map((object: Yaml) => {
      const pod = object.kind === "Deployment" && object.spec.template.spec.containers[0];
      if (pod) pod.env.sort((a: Yaml, b: Yaml) => a.name.localeCompare(b.name));
      return object;
    })
    .sort((a: Yaml, b: Yaml) => keyOf(a).localeCompare(keyOf(b)));
const keyOf = ({ kind, metadata }: Yaml): string => `${kind} ${metadata.name}`;

describe.runIf(hasGo)("the Helm chart", () => {
  let folder: string;
  let program: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "threadmill-chart-"));
    program = join(folder, "render");
    const env = { ...process.env, ...GO, GOCACHE: join(folder, "cache"), GOFLAGS: "" };
    execFileSync("/usr/bin/go", ["build", "-o", program, RENDERER], { env });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = (values: object, release: object) =>
    spawnSync(program, [CHART], { input: JSON.stringify({ Values: values, Release: release }), encoding: "utf8" });
  const render = (values: object = {}, release = RELEASE): Yaml[] => {
    const { status, stdout, stderr } = run({ ...VALUES, ...values }, release);
    if (status !== 0) throw new Error(stderr);
    return loadAllYaml(stdout);
  };
  const named = (objects: Yaml[], key: string): Yaml => objects.find((object) => keyOf(object) === key);

  it("makes the objects of deploy/kubernetes", () => {
    const expected = (kustomization.resources as string[]).flatMap(plain);
    const [{ newName, newTag }] = kustomization.images;
    for (const { kind, spec } of expected)
      if (kind === "Deployment") spec.template.spec.containers[0].image = `${newName}:${newTag}`;
    const others = expected.filter((object) => keyOf(object) !== "Namespace threadmill");
    expect(sorted(render())).toEqual(sorted(others));
  });

  it("scales the workers by KEDA if it is enabled, as deploy/kubernetes does", () => {
    const objects = render({ keda: { ...VALUES.keda, enabled: true } });
    expect(named(objects, "ScaledObject threadmill-worker")).toEqual(plain("keda.yaml")[0]);
    expect(named(objects, "Deployment threadmill-worker").spec.replicas).toBeUndefined();
    const [other] = render({ keda: { enabled: true, minReplicas: 0, maxReplicas: 3, runsPerWorker: 7 } }).filter(
      ({ kind }) => kind === "ScaledObject",
    );
    expect(other.spec).toMatchObject({ minReplicaCount: 0, maxReplicaCount: 3 });
    expect(other.spec.triggers[0].metadata.targetQueryValue).toBe("7");
  });

  it("uses each value", () => {
    const resources = { requests: { cpu: "2", memory: "1Gi" }, limits: { cpu: "4", memory: "3Gi" } };
    const objects = render(
      {
        image: { repository: "localhost:5000/other", tag: 7, pullSecrets: ["registry"] },
        secret: "other-secret",
        terminationGracePeriodSeconds: 300,
        api: {
          replicas: 5,
          resources,
          env: { THREADMILL_PUBLIC_URL: "https://a.example", THREADMILL_DEPLOY_PROCESS: "auto" },
        },
        worker: { replicas: 9, resources, env: { N_JOBS_PER_WORKER: 10 } },
      },
      { Name: "blue", Namespace: "agents" },
    );
    for (const role of ["api", "worker"]) {
      const { metadata, spec } = named(objects, `Deployment blue-${role}`);
      expect([metadata.namespace, spec.replicas]).toEqual(["agents", role === "api" ? 5 : 9]);
      expect(spec.selector.matchLabels["app.kubernetes.io/instance"]).toBe("blue");
      expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels);
      const pod = spec.template.spec;
      expect(pod).toMatchObject({ imagePullSecrets: [{ name: "registry" }], terminationGracePeriodSeconds: 300 });
      const [{ image, env, envFrom, resources: given }] = pod.containers;
      expect([image, envFrom, given]).toEqual([
        "localhost:5000/other:7",
        [{ secretRef: { name: "other-secret" } }],
        resources,
      ]);
      const settings = Object.fromEntries(env.map(({ name, value }: Yaml) => [name, value]));
      expect(settings).toMatchObject(
        role === "api"
          ? { THREADMILL_ROLE: "api", THREADMILL_PUBLIC_URL: "https://a.example", THREADMILL_DEPLOY_PROCESS: "auto" }
          : { THREADMILL_ROLE: "worker", N_JOBS_PER_WORKER: "10" },
      );
    }
  });

  it("has no rights in the cluster without a namespace for instances", () => {
    const objects = render({ agentsNamespace: "" });
    expect(new Set(objects.map(({ kind }) => kind))).toEqual(new Set(["Deployment", "Service", "PodDisruptionBudget"]));
    const { spec } = named(objects, "Deployment threadmill-api").spec.template;
    expect(spec).toMatchObject({ automountServiceAccountToken: false });
    expect(spec.serviceAccountName).toBeUndefined();
    expect(JSON.stringify(spec)).not.toContain("KUBERNETES");
  });

  it.each([
    [{ image: { repo: "x" } }, "The chart has no value image.repo. It has: repository, tag, pullSecrets."],
    [{ replicas: 3 }, "The chart has no value replicas. It has: image, secret,"],
    [
      { api: { ...VALUES.api, env: { THREADMILL_ROLE: "all" } } },
      "The chart sets THREADMILL_ROLE: remove it from api.env.",
    ],
    [{ secret: "" }, "Set secret to the name of a Secret with THREADMILL_DATABASE_URL"],
  ])("refuses %j", (values, message) => {
    const { status, stderr } = run({ ...VALUES, ...values }, RELEASE);
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it("has only files that Helm reads", () => {
    expect(readdirSync(CHART).sort()).toEqual(["Chart.yaml", "templates", "values.yaml"]);
    const chart: Yaml = loadYaml(readFileSync(join(CHART, "Chart.yaml"), "utf8"));
    expect(chart).toMatchObject({
      apiVersion: "v2",
      name: "threadmill",
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    });
  });
});
