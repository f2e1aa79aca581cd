import type { Measurement } from "../measurement.ts";
import { cancel } from "./cancel.ts";
import { deploy } from "./deploy.ts";
import { everywhere } from "./everywhere.ts";
import { experiments } from "./experiments.ts";
import { hostile } from "./hostile.ts";
import { openStreams } from "./open-streams.ts";
import { readers } from "./readers.ts";
import { replay } from "./replay.ts";
import { rollback } from "./rollback.ts";
import { router } from "./router.ts";
import { webCompare } from "./web-compare.ts";

/** In the order in which they are taken. */
export const measurements: readonly Measurement[] = [
  ...everywhere,
  cancel,
  rollback,
  readers,
  openStreams,
  replay,
  experiments,
  router,
  hostile,
  deploy,
  webCompare,
];
