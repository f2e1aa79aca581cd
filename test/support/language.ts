import { inject } from "vitest";
import { pythonEnvironment } from "./python.ts";

/** The language of graphs that have twins, in this project (test/suites.ts). */
export const language: "js" | "python" = inject("language");

/**
 * Returns the graphs of a folder of test/graphs in {@link language}, as options of a service. Python graphs are executed in processes, also
 * with `inline`.
 */
export async function graphsIn(folder: string): Promise<{ config: string; env: Record<string, string> }> {
  const isPython = language === "python";
  return {
    config: `test/graphs/${folder}/${isPython ? "python" : "langgraph"}.json`,
    env: isPython ? { THREADMILL_PYTHON: await pythonEnvironment() } : {},
  };
}
