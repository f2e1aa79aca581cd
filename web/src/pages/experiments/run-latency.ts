import type { ExperimentRun } from "../../../../src/experiments/contract/runs.ts";
import { DASH, duration } from "../../ui/format.ts";

/** How long a run took. */
export const latencyOf = ({ start_time, end_time }: ExperimentRun): string =>
  end_time === null ? DASH : duration(Date.parse(end_time) - Date.parse(start_time));
