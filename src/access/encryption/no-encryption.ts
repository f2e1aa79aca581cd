import type { Seal } from "./seal.ts";

/** For a process that serves the agent server alone: it has no keys, and nothing in it asks for a secret. */
export const sealsNothing: Seal = { seal: refuse, open: refuse };

function refuse(): never {
  throw new Error("This process has no encryption keys: it serves the agent server alone.");
}
