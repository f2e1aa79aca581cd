import { pythonEnv, runScript } from "../python-env.ts";
import type { CallResults } from "./outcomes.ts";

interface Line {
  client: string;
  public?: string[];
  method?: string;
  error?: string | null;
}

/** Calls every method of the Python clients on a service. @returns results and public names by client */
export async function callPython(
  url: string,
): Promise<{ results: Record<string, CallResults>; names: Record<string, string[]> }> {
  const { python } = await pythonEnv();
  if (!python) throw new Error("The Python clients cannot be installed on this machine.");
  const { printed, complaints } = await runScript(python, "langsmith_methods.py", [url]);
  const results: Record<string, CallResults> = {};
  const names: Record<string, string[]> = {};
  for (const line of printed.split("\n").filter(Boolean)) {
    const { client, public: listed, method, error } = JSON.parse(line) as Line;
    results[client] ??= {};
    if (listed) names[client] = listed;
    else results[client][String(method)] = error ?? undefined;
  }
  if (Object.keys(results).length === 0) throw new Error(complaints);
  return { results, names };
}
