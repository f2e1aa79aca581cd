/** The interface of the experiments for other modules, besides the contract. */
export type { ExperimentsService } from "./worker/experiments-service.ts";
