import type { Mutant } from "./mutants.ts";

/** Guards of roll-outs: who executes runs meanwhile, and what is kept of those before. */
export const ROLLOUT_MUTANTS: readonly Mutant[] = [
  {
    name: "rollout: whoever shares the database takes runs",
    file: "src/agent-server/storage/run-leases.ts",
    replace: ['(isRollout ? claim.where((e) => isClaimant(e, given("rollout"))) : claim)', "claim"],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "rollout: whoever shares the database rescues runs",
    file: "src/agent-server/storage/lost-runs.ts",
    replace: [".$if(rollout !== undefined,", ".$if(rollout === -1,"],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "rollout: an old one takes runs back",
    file: "src/agent-server/storage/claimant.ts",
    replace: ['.where("claimant.rollout", "<", rollout)', '.where("claimant.rollout", "<>", rollout)'],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "rollout: an instance that stands by drops the assistants of graphs that it has not",
    file: "src/agent-server/activation.ts",
    replace: ["if (rollout === undefined || (await mayClaimAs(database.read, rollout)))", "if (rollout !== -1)"],
    suites: ["test/engine/rollout.test.ts"],
  },
  {
    name: "rollout: the new instances are never told to take runs over",
    file: "src/control-plane/reconcile/next-step.ts",
    replace: [
      "if (!instance || instance.rollout === activated) return undefined;",
      "if (activated !== 0) return undefined;",
    ],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "rollout: builds go that can be deployed again",
    file: "src/control-plane/cleanup/old-builds.ts",
    replace: ["const KEPT_BUILDS = 5;", "const KEPT_BUILDS = 4;"],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "rollout: requests of deployments break off when the service stops",
    file: "src/app/compose/control.ts",
    replace: ["router.settle(config.shutdown_grace_ms)", "router.settle(0)"],
    suites: ["test/control/router/service.test.ts"],
  },
];
