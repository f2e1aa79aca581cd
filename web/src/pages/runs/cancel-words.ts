import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";

/** What becomes of what a cancelled run has done, in a sentence each. */
export const CANCEL_ACTIONS = [
  { action: "interrupt", label: "Interrupt", hint: "Stops, and keeps the steps that are done." },
  { action: "rollback", label: "Roll back", hint: "Stops, and undoes all that was done, as if it had never run." },
] as const satisfies readonly { action: CancelAction; label: string; hint: string }[];
