import type { QueryClient } from "@tanstack/react-query";
import type { Run } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { runsQuery } from "./queries.ts";

/** What a run is to do; one of input and command. */
export interface RunOrder {
  assistant_id: string;
  input?: unknown;
  command?: { resume: unknown };
  /** Where it starts; the newest state when it is left out. */
  checkpoint_id?: string;
}

/** What the pages show while it runs: tokens, the state after each step, which node works, what nodes tell. */
const SHOWN = { stream_mode: ["values", "messages-tuple", "tasks", "custom"], stream_subgraphs: true };

/** Starts a run. It is in the list of runs at once, so whoever looks at the thread follows it. */
export async function startRun(client: QueryClient, thread_id: string, order: RunOrder): Promise<Run> {
  const run = await api.post<Run>(`/threads/${thread_id}/runs`, { ...SHOWN, ...order });
  const { queryKey } = runsQuery(thread_id);
  // An answer that is on its way was written before the run was there.
  await client.cancelQueries({ queryKey });
  client.setQueryData(queryKey, (runs: Run[] = []) => [run, ...runs.filter(({ run_id }) => run_id !== run.run_id)]);
  return run;
}
