import type { Mutant } from "./mutants.ts";

const FOLDER = "src/control-plane/drivers/kubernetes";
const suites = ["test/control/kubernetes-driver.test.ts"];

/** Guards of the Kubernetes driver. */
export const KUBERNETES_MUTANTS: readonly Mutant[] = [
  {
    name: "kubernetes: a second process stops the pod of the first",
    file: `${FOLDER}/manifests.ts`,
    replace: ["      replicas: 1,", "      replicas: paused ? 0 : 1,"],
    suites,
  },
  {
    name: "kubernetes: a Deployment that was left paused counts as started",
    file: `${FOLDER}/instances.ts`,
    replace: ["if (!existing?.spec?.replicas || existing.spec.paused)", "if (!existing?.spec?.replicas)"],
    suites,
  },
  {
    name: "kubernetes: fields of other programs are overwritten",
    file: `${FOLDER}/cluster.ts`,
    replace: [
      "const query = { fieldManager: FIELD_MANAGER };",
      "const query = { fieldManager: FIELD_MANAGER, force: true };",
    ],
    suites,
  },
  {
    name: "kubernetes: a missing right to create objects is not named",
    file: `${FOLDER}/cluster.ts`,
    replace: ["(DENIED.exec(message) ?? CREATION_DENIED.exec(message))", "DENIED.exec(message)"],
    suites,
  },
  {
    name: "listener: every workspace can connect as a listener",
    file: "src/control-plane/listeners.ts",
    replace: ["    await this.get(caller, listener_id);\n    if", "    if"],
    suites: ["test/control/listener.test.ts"],
  },
  {
    name: "listener: a listener that is not connected fails a rollout",
    file: "src/control-plane/reconcile/job-runner.ts",
    replace: [" && !(error.cause instanceof ListenerUnavailableError)", ""],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "listener: a listener chooses which instance it has started",
    file: "src/control-plane/drivers/listener/driver.ts",
    replace: [
      "const { handle, address } = await attachment.start();\n      const { instance_id, deployment_id, revision_id } = spec;",
      "const { instance_id, deployment_id, revision_id, handle, address } = await attachment.start();",
    ],
    suites: ["test/control/listener-conformance.test.ts"],
  },
  {
    name: "kubernetes: Secrets outlive their instance",
    file: `${FOLDER}/manifests.ts`,
    replace: [
      'kind: "Secret",\n    metadata: { ...metadataOf(input), ownerReferences: [ownerOf(owner)] },',
      'kind: "Secret",\n    metadata: { ...metadataOf(input), ownerReferences: [] },',
    ],
    suites,
  },
  {
    name: "kubernetes: the instances of other services are listed",
    file: `${FOLDER}/instances.ts`,
    replace: [
      'const own = selectorOf("service", service_id);',
      'const own = "app.kubernetes.io/managed-by=threadmill";',
    ],
    suites,
  },
  {
    name: "kubernetes: a pod that replaced another one counts as the same",
    file: `${FOLDER}/instances.ts`,
    replace: ["if (!pod || runOf(pod).pod !== run.pod)", "if (!pod)"],
    suites,
  },
  {
    name: "kubernetes: images of any registry are deployed",
    file: `${FOLDER}/driver.ts`,
    replace: ["      requireListed(image, docker_registries);", ""],
    suites,
  },
];
