import { pythonEnv, runScript } from "../python-env.ts";
import type { CallResults } from "./outcomes.ts";
import type { SentRequest } from "./sent-fields.ts";

interface Line {
  client: string;
  public?: string[];
  method?: string;
  error?: string | null;
  sent?: SentRequest[];
}

export interface PythonCalls {
  results: Record<string, CallResults>;
  /** Public names by client. */
  names: Record<string, string[]>;
  /** The requests of every client, by method. */
  sent: Record<string, Record<string, SentRequest[]>>;
}

/**
 * Calls every method of Python clients on a service.
 *
 * @param script file in the folder python that prints with method_calls.py
 */
export async function callPython(script: string, url: string): Promise<PythonCalls> {
  const { python } = await pythonEnv();
  if (!python) throw new Error("The Python clients cannot be installed on this machine.");
  const { printed, complaints } = await runScript(python, script, [url]);
  const called: PythonCalls = { results: {}, names: {}, sent: {} };
  for (const line of printed.split("\n").filter(Boolean)) {
    const { client, public: listed, method, error, sent = [] } = JSON.parse(line) as Line;
    if (listed) called.names[client] = listed;
    if (!method) continue;
    called.results[client] = { ...called.results[client], [method]: error ?? undefined };
    called.sent[client] = { ...called.sent[client], [method]: sent };
  }
  if (Object.keys(called.results).length === 0) throw new Error(complaints);
  return called;
}
