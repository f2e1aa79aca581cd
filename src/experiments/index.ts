/** What other modules use of the experiments, besides its contract. */
export type { ExperimentsService } from "./worker/experiments-service.ts";
