import type { Measurement } from "../measurement.ts";
import { createWait } from "./create-wait.ts";
import { customEvents } from "./custom-events.ts";
import { growingThread } from "./growing-thread.ts";
import { memory } from "./memory.ts";
import { startup } from "./startup.ts";
import { statelessWait } from "./stateless-wait.ts";

/** What can be measured of LangGraph alone, too: its process loads nothing else. */
export const everywhere: readonly Measurement[] = [
  startup,
  createWait,
  statelessWait,
  customEvents,
  growingThread,
  memory,
];
