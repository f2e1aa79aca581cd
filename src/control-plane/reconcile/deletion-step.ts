import type { DeploymentState } from "./deployment-state.ts";
import { instanceStep } from "./instance-step.ts";
import { type Facts, keyOf, type Step, type StepSettings } from "./steps.ts";

/** The way out: no traffic, no builder, no instance, nothing of the drivers', no file, and then no row. */
export function deletionStep(state: DeploymentState, facts: Facts, settings: StepSettings): Step {
  if (!facts.route_closed) return { do: "close route" };
  for (const revision of state.revisions) {
    const key = keyOf({ kind: "build", revision });
    if (facts.jobs.get(key)?.aborted === false) return { do: "abort", key };
  }
  const step = instanceStep(state, facts, settings);
  if (step) return step;
  if (isBusy(facts) || state.instances.length > 0) return { do: "rest", ms: settings.look_ms };
  return facts.removed ? { do: "erase" } : { do: "begin", job: { kind: "remove" } };
}

/** Whether something goes on, or is to be tried again in a while. */
export const isBusy = ({ jobs, troubles }: Facts): boolean =>
  jobs.size > 0 || [...troubles.values()].some(({ waits }) => waits);
