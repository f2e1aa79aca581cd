import { inject } from "vitest";
import { pythonSettings } from "./python.ts";

/** The language of graphs that have twins, in this project (test/suites.ts). */
export const language: "js" | "python" = inject("language");
const encrypts = inject("encrypts");

/**
 * Returns the graphs of a folder of test/graphs in {@link language}, as options of a service. Python graphs are executed in processes, also
 * with `inline`.
 */
export async function graphsIn(folder: string): Promise<{ config: string; env: Record<string, string> }> {
  const name = encrypts ? "encrypted" : language === "python" ? "python" : "langgraph";
  return {
    config: `test/graphs/${folder}/${name}.json`,
    env: name === "langgraph" ? {} : await pythonSettings(),
  };
}
