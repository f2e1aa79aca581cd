import type { Mutant } from "./mutants.ts";

const suite = (name: string): string[] => [`test/http/control/${name}.test.ts`];

/** Guards of the control plane's API. */
export const DEPLOYMENT_MUTANTS: readonly Mutant[] = [
  {
    name: "deployments: responses contain values of secrets",
    file: "src/control-plane/deployments/secrets.ts",
    replace: ['mayUse(caller, "admin")', 'mayUse(caller, "deployments")'],
    suites: suite("secrets"),
  },
  {
    name: "deployments: secrets of a revision decrypt in another revision",
    file: "src/control-plane/deployments/secrets.ts",
    replace: ['row_id: owner.table === "deployments" ? owner.deployment_id : owner.revision_id', 'row_id: ""'],
    suites: suite("secrets"),
  },
  {
    name: "deployments: validation errors contain secrets",
    file: "src/platform/contract/validation-errors.ts",
    replace: ["path.slice(0, -1).find(isSecretField)", "path.slice(0, 0).find(isSecretField)"],
    suites: suite("secrets"),
  },
  {
    name: "deployments: deployments of other workspaces can be changed",
    file: "src/control-plane/storage/deployments.ts",
    replace: [
      "        .selectAll()\n        .where((e) => e.and({ tenant_id, deployment_id })),",
      "        .selectAll()\n        .where((e) => e.and({ deployment_id })),",
    ],
    suites: suite("deployments"),
  },
  {
    name: "deployments: deployments of other workspaces can be deleted",
    file: "src/control-plane/storage/deployments.ts",
    replace: [
      'updated_at: nowMs })\n      .where("tenant_id", "=", tenant_id)',
      'updated_at: nowMs })\n      .where("tenant_id", ">=", tenant_id.slice(0, 0))',
    ],
    suites: suite("deployments"),
  },
  {
    name: "deployments: two revisions are in progress at once",
    file: "src/control-plane/deployments/change-deployment.ts",
    replace: ["const is_queued = await hasRevisionInProgress(tx, deployment_id);", "const is_queued = false;"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: more than one revision waits",
    file: "src/control-plane/deployments/change-deployment.ts",
    replace: [
      "if (is_queued) await skipQueued(tx, deployment_id);",
      "if (!is_queued) await skipQueued(tx, deployment_id);",
    ],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a revision that was never deployed is redeployed",
    file: "src/control-plane/storage/revisions.ts",
    replace: [
      '      .where((e) => e.or([e("status", "=", "DEPLOYED"), e("deployed_at", "is not", null)])),\n',
      "      ,\n",
    ],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a redeployment does not wait for the revision in progress",
    file: "src/control-plane/deployments/revisions.ts",
    replace: ["if (await hasRevisionInProgress(tx, deployment_id))", "if (deployment_id === revision_id)"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a change does not notify the reconciler",
    file: "src/control-plane/storage/deployments.ts",
    replace: ["next_seq: seq + 1, look_at: nowMs,", "next_seq: seq + 1,"],
    suites: suite("revisions"),
  },
  {
    name: "deployments: a tarball of another deployment is built",
    file: "src/control-plane/storage/uploads.ts",
    replace: [
      " })\n      .where((e) => e.and({ deployment_id, object_path }))",
      " })\n      .where((e) => e.and({ object_path }))",
    ],
    suites: suite("uploads"),
  },
  {
    name: "deployments: a tarball is built before its upload is complete",
    file: "src/control-plane/storage/uploads.ts",
    replace: [
      '\n      .where("size_bytes", "is not", null),\n  );\n\n/**\n * Deletes expired',
      ",\n  );\n\n/**\n * Deletes expired",
    ],
    suites: suite("uploads"),
  },
  {
    name: "uploads: any token is accepted",
    file: "src/control-plane/uploads.ts",
    replace: ["if (!isOfDigest(token, open?.token_digest) || !open)", "if (!open)"],
    suites: suite("uploads"),
  },
  {
    name: "uploads: a URL accepts two uploads",
    file: "src/control-plane/storage/uploads.ts",
    replace: [
      '      .where("size_bytes", "is", null)\n      .where("expires_at", ">", nowMs)\n      .returningAll(),',
      '      .where("expires_at", ">", nowMs)\n      .returningAll(),',
    ],
    suites: suite("uploads"),
  },
  {
    name: "uploads: the size limit is not enforced",
    file: "src/control-plane/uploads.ts",
    replace: ["if (size_bytes > limit_bytes)", "if (size_bytes < 0)"],
    suites: suite("uploads"),
  },
  {
    name: "uploads: a tarball is deleted while the latest revision needs it",
    file: "src/control-plane/storage/uploads.ts",
    replace: ['                  e("r.revision_id", "=", e.ref("d.latest_revision_id")),\n', ""],
    suites: suite("uploads"),
  },
  {
    name: "logs: a page starts at the start of the previous page",
    file: "src/control-plane/storage/logs.ts",
    replace: ['e("log_no", beyond, after.log_no)', 'e("log_no", ">=", 0)'],
    suites: suite("logs"),
  },
];
