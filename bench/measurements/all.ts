import type { Measurement } from "../measurement.ts";
import { cancel, cancelAcrossProcesses } from "./cancel.ts";
import { crons } from "./crons.ts";
import { deploy } from "./deploy.ts";
import { evaluate } from "./evaluate.ts";
import { experiments } from "./experiments.ts";
import { flood } from "./flood.ts";
import { floorMeasurements } from "./floor-measurements.ts";
import { hostile } from "./hostile.ts";
import { manyEvents } from "./many-events.ts";
import { manyReaders } from "./many-readers.ts";
import { openStreams } from "./open-streams.ts";
import { python } from "./python.ts";
import { pythonPeersMeasurement } from "./python-peers.ts";
import { readers, socketReaders, threadReaders } from "./readers.ts";
import { replay } from "./replay.ts";
import { rollback } from "./rollback.ts";
import { router } from "./router.ts";
import { soak } from "./soak.ts";
import { store } from "./store.ts";
import { threadProtocol } from "./thread-protocol.ts";
import { traceReading } from "./trace-reading.ts";
import { traces } from "./traces.ts";
import { tracing } from "./tracing.ts";
import { webCompare } from "./web-compare.ts";
import { webTrace } from "./web-trace.ts";

/** In the order of execution. */
export const measurements: readonly Measurement[] = [
  ...floorMeasurements,
  cancel,
  cancelAcrossProcesses,
  rollback,
  readers,
  threadReaders,
  socketReaders,
  threadProtocol,
  openStreams,
  manyReaders,
  replay,
  experiments,
  router,
  hostile,
  traces,
  tracing,
  evaluate,
  traceReading,
  store,
  crons,
  flood,
  python,
  pythonPeersMeasurement,
  deploy,
  webCompare,
  webTrace,
  manyEvents,
  soak,
];
