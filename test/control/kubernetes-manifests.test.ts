import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dumpYaml } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { Cluster } from "../../src/control-plane/drivers/kubernetes/cluster.ts";
import {
  deploymentManifest,
  type ManifestInput,
  secretManifest,
  serviceManifest,
} from "../../src/control-plane/drivers/kubernetes/manifests.ts";
import { instanceSpec } from "../support/instance-spec.ts";

const id = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;

const SMALL: ManifestInput = {
  spec: instanceSpec({
    instance_id: id(1),
    deployment_id: id(2),
    revision_id: id(3),
    artifact: "registry.example.com/acme/agent@sha256:0123",
    api_key: "key-1",
    env: { OPENAI_API_KEY: "sk-1", API_KEYS: "of-the-user", DATABASE_URL: "postgres://own" },
  }),
  namespace: "agents",
  service_id: "service-1",
  database_url: "postgres://role:password@db/threadmill",
  pull_secrets: [],
  service_account: undefined,
};

const LARGE: ManifestInput = {
  ...SMALL,
  spec: { ...SMALL.spec, resources: { cpu_limit: 4.5, memory_limit_mb: 200 } },
  pull_secrets: ["registry-1", "registry-2"],
  service_account: "agent",
};

const objectsOf = (input: ManifestInput) => {
  const owner = deploymentManifest(input, { paused: false });
  owner.metadata = { ...owner.metadata, uid: id(9) };
  const secret = secretManifest(input, owner);
  return [
    deploymentManifest(input, { paused: false }),
    serviceManifest(input, owner),
    { ...secret, data: decoded(secret.data) },
  ];
};

const decoded = (data: Record<string, string> = {}) =>
  Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value, "base64").toString()]));

/** Reviewed by eye. `npx vitest run -u` writes them. */
describe("the objects of an instance", () => {
  it.each([
    ["small", SMALL],
    ["large", LARGE],
  ])("are those of kubernetes/%s.yaml", async (name, input) => {
    const file = join(import.meta.dirname, "kubernetes", `${name}.yaml`);
    await expect(
      objectsOf(input)
        .map((object) => dumpYaml(object))
        .join("---\n"),
    ).toMatchFileSnapshot(file);
  });

  it("differ while the other objects are missing only in that the Deployment is paused", () => {
    const { spec, ...rest } = deploymentManifest(SMALL, { paused: true });
    const { paused, ...others } = spec ?? {};
    expect(paused).toBe(true);
    expect({ ...rest, spec: others }).toEqual(deploymentManifest(SMALL, { paused: false }));
  });
});

describe("the client of the API server", () => {
  it("reports a connection that is lost during a response, and the process goes on", async () => {
    const server = createServer((request, response) => {
      response.write('{"items": [');
      // After the client has received the head of the response.
      setTimeout(() => request.socket.resetAndDestroy(), 100);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const folder = mkdtempSync(join(tmpdir(), "kubeconfig-"));
    const kubeconfig = join(folder, "config.yaml");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const cluster = { name: "c", cluster: { server: url, "insecure-skip-tls-verify": true } };
    const contexts = [{ name: "x", context: { cluster: "c", user: "u" } }];
    const users = [{ name: "u", user: { token: "t" } }];
    writeFileSync(kubeconfig, dumpYaml({ "current-context": "x", clusters: [cluster], contexts, users }));
    await expect(new Cluster({ kubeconfig, namespace: "agents" }).list("pods", "a=b")).rejects.toThrow(
      /^(aborted|read ECONNRESET)$/,
    );
    rmSync(folder, { recursive: true });
    server.close();
  });
});
