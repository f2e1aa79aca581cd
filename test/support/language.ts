import { inject } from "vitest";

/** The language of the graphs of test/graphs/scenarios in this project (test/suites.ts). */
export const language: "js" | "python" = inject("language");
