import type { Measurement } from "../measurement.ts";
import { createWait, statelessWait } from "./create-wait.ts";
import { customEvents } from "./custom-events.ts";
import { growingThread } from "./growing-thread.ts";
import { memory } from "./memory.ts";
import { runCost } from "./run-cost.ts";
import { startup } from "./startup.ts";

/** The measurements that include the floor. Its process loads only these. */
export const floorMeasurements: readonly Measurement[] = [
  startup,
  createWait,
  statelessWait,
  runCost,
  customEvents,
  growingThread,
  memory,
];
