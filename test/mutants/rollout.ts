import type { Mutant } from "./mutants.ts";

/** Guards of rollouts: which instances execute runs during a rollout, and what is kept of earlier ones. */
export const ROLLOUT_MUTANTS: readonly Mutant[] = [
  {
    name: "rollout: any process on the database claims runs",
    file: "src/agent-server/storage/claims/claims.ts",
    replace: ['(isRollout ? claim.where((e) => isActiveRollout(e, given("rollout"))) : claim)', "claim"],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "rollout: any process on the database rescues runs",
    file: "src/agent-server/storage/run-leases.ts",
    replace: [".$if(rollout !== undefined,", ".$if(rollout === -1,"],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "rollout: an old rollout becomes active again",
    file: "src/agent-server/storage/claims/claims.ts",
    replace: ['.where("active_rollout.rollout", "<", rollout)', '.where("active_rollout.rollout", "<>", rollout)'],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "rollout: a standby instance deletes assistants of graphs that it does not have",
    file: "src/agent-server/activation.ts",
    replace: ["if (rollout === undefined || (await mayClaimAsRollout(database.read, rollout)))", "if (rollout !== -1)"],
    suites: ["test/engine/rollout.test.ts"],
  },
  {
    name: "rollout: new instances are never activated",
    file: "src/control-plane/reconcile/next-step.ts",
    replace: [
      "if (!instance || instance.rollout === activated_rollout) return undefined;",
      "if (activated_rollout !== 0) return undefined;",
    ],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "rollout: builds of redeployable revisions are deleted",
    file: "src/control-plane/cleanup/garbage-collection.ts",
    replace: ["const KEPT_BUILDS = 5;", "const KEPT_BUILDS = 4;"],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "rollout: requests of deployments break off when the service stops",
    file: "src/app/compose/control-plane.ts",
    replace: ["router.settle(config.shutdown_grace_ms)", "router.settle(0)"],
    suites: ["test/control/router/service.test.ts"],
  },
];
