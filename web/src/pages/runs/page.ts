import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Activity } from "lucide-react";
import type { RunStatus } from "../../../../src/agent-server/contract/records.ts";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";

export const STATUSES = [
  "pending",
  "running",
  "success",
  "error",
  "timeout",
  "interrupted",
] as const satisfies readonly RunStatus[];

/** Time ranges of the run list, in minutes. */
export const SPANS = { "15m": 15, "1h": 60, "24h": 1_440, "7d": 10_080 } as const;
export type Span = keyof typeof SPANS;

/** Status filter of the run list. `active` selects pending and running runs. */
export type StatusChoice = RunStatus | "active";

export interface RunsSearch {
  status?: StatusChoice;
  /** Assistant ID. */
  assistant?: string;
  /** Complete or partial thread ID. */
  thread?: string;
  since?: Span;
  /** ID of the run whose details are open. */
  run?: string;
}

export const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  validateSearch: (search): RunsSearch => ({
    status: (["active", ...STATUSES] as const).find((status) => status === search.status),
    assistant: textOf(search.assistant),
    thread: textOf(search.thread),
    since: (Object.keys(SPANS) as Span[]).find((span) => span === search.since),
    run: textOf(search.run),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./runs-page.tsx")),
    "RunsPage",
  ),
});

export const runs: Page = {
  nav: { label: "Runs", to: "/runs", icon: Activity, scope: "agents" },
  routes: [runsRoute],
  palette: [
    {
      group: "Runs",
      find: async (asked) =>
        [
          { label: "Pending and running runs", hint: "Runs", to: "/runs?status=active" },
          { label: "Failed runs", hint: "Runs", to: "/runs?status=error" },
        ].filter(({ label }) => asked !== "" && label.toLowerCase().includes(asked.toLowerCase())),
    },
  ],
};
