import type { Mutant } from "./mutants.ts";

const suite = (name: string): string[] => [`test/http/control/${name}.test.ts`];

/** Guards of the control plane's API. */
export const DEPLOYMENT_MUTANTS: readonly Mutant[] = [
  {
    name: "deployments: values of secrets are shown to everybody",
    file: "src/control-plane/secrets.ts",
    replace: ['mayUse(caller, "admin")', 'mayUse(caller, "deployments")'],
    suites: suite("secrets"),
  },
  {
    name: "deployments: a revision's secrets open in another's place",
    file: "src/control-plane/secrets.ts",
    replace: ['row_id: of.table === "deployments" ? of.deployment_id : of.revision_id', 'row_id: ""'],
    suites: suite("secrets"),
  },
  {
    name: "deployments: a refusal repeats a secret to who sent it",
    file: "src/platform/contract/invalid-parts.ts",
    replace: ["path.slice(0, -1).find(isSecretField)", "path.slice(0, 0).find(isSecretField)"],
    suites: suite("secrets"),
  },
  {
    name: "deployments: those of other workspaces are changed",
    file: "src/control-plane/storage/deployments.ts",
    replace: [
      '        .selectAll()\n        .where("tenant_id", "=", tenant_id)\n',
      '        .selectAll()\n        .where("tenant_id", ">=", tenant_id.slice(0, 0))\n',
    ],
    suites: suite("deployments"),
  },
  {
    name: "deployments: those of other workspaces are deleted",
    file: "src/control-plane/storage/deployments.ts",
    replace: [
      'updated_at: nowMs })\n      .where("tenant_id", "=", tenant_id)',
      'updated_at: nowMs })\n      .where("tenant_id", ">=", tenant_id.slice(0, 0))',
    ],
    suites: suite("deployments"),
  },
  {
    name: "deployments: two revisions are under way at once",
    file: "src/control-plane/change-deployment.ts",
    replace: ["const waits = await isUnderWay(tx, deployment_id);", "const waits = false;"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: several revisions wait",
    file: "src/control-plane/change-deployment.ts",
    replace: ["if (waits) await skipQueued(tx, deployment_id);", "if (!waits) await skipQueued(tx, deployment_id);"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: what never served is deployed again",
    file: "src/control-plane/storage/revisions.ts",
    replace: [
      '      .where((e) => e.or([e("status", "=", "DEPLOYED"), e("deployed_at", "is not", null)])),\n',
      "      ,\n",
    ],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a redeployment does not wait for what is under way",
    file: "src/control-plane/revisions.ts",
    replace: ["if (await isUnderWay(tx, deployment_id))", "if (deployment_id === revision_id)"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a change wakes nobody",
    file: "src/control-plane/storage/deployments.ts",
    replace: ["next_seq: seq + 1, look_at: nowMs,", "next_seq: seq + 1,"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a tarball of another deployment is built",
    file: "src/control-plane/storage/uploads.ts",
    replace: [
      ' })\n      .where("deployment_id", "=", deployment_id)\n',
      ' })\n      .where("deployment_id", ">=", deployment_id.slice(0, 0))\n',
    ],
    suites: suite("uploads"),
  },
  {
    name: "deployments: a tarball is built before it has arrived",
    file: "src/control-plane/storage/uploads.ts",
    replace: [
      '.where("object_path", "=", object_path)\n      .where("size_bytes", "is not", null),\n  );\n\n/**\n * What has expired',
      '.where("object_path", "=", object_path),\n  );\n\n/**\n * What has expired',
    ],
    suites: suite("uploads"),
  },
  {
    name: "uploads: any token will do",
    file: "src/control-plane/uploads.ts",
    replace: ["if (!isOfDigest(token, open?.token_digest) || !open)", "if (!open)"],
    suites: suite("uploads"),
  },
  {
    name: "uploads: a URL is good for two",
    file: "src/control-plane/storage/uploads.ts",
    replace: [
      '      .where("size_bytes", "is", null)\n      .where("expires_at", ">", nowMs)\n      .returningAll(),',
      '      .where("expires_at", ">", nowMs)\n      .returningAll(),',
    ],
    suites: suite("uploads"),
  },
  {
    name: "uploads: what is longer than allowed is stored",
    file: "src/control-plane/upload-folder.ts",
    replace: ["if (size_bytes > limit_bytes)", "if (size_bytes < 0)"],
    suites: suite("uploads"),
  },
  {
    name: "uploads: a tarball goes while the latest revision needs it",
    file: "src/control-plane/storage/uploads.ts",
    replace: ['                  e("r.revision_id", "=", e.ref("d.latest_revision_id")),\n', ""],
    suites: suite("uploads"),
  },
  {
    name: "logs: a page begins where the one before began",
    file: "src/control-plane/storage/logs.ts",
    replace: ['e("log_no", beyond, after.log_no)', 'e("log_no", ">=", 0)'],
    suites: suite("logs"),
  },
];
