import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Activity } from "lucide-react";
import type { MonitoringQuery } from "../../../../src/agent-server/contract/app-runs.ts";
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

/** Status filters of the run list that select several statuses. */
export const STATUS_GROUPS = { active: ["pending", "running"], failed: ["error", "timeout"] } as const satisfies Record<
  string,
  readonly RunStatus[]
>;

export type StatusChoice = RunStatus | keyof typeof STATUS_GROUPS;

export interface RunsSearch {
  status?: StatusChoice;
  /** Assistant ID. */
  assistant?: string;
  /** Complete or partial thread ID. */
  thread?: string;
  since?: Span;
  /** Range of the time of the end, in ISO 8601. */
  ended_from?: string;
  ended_until?: string;
  /** ID of the run whose details are open. */
  run?: string;
}

/** Time ranges of the monitoring. */
export const RANGES = {
  "1h": "Last hour",
  "6h": "Last 6 hours",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
} as const satisfies Record<MonitoringQuery["range"], string>;

export const DEFAULT_RANGE = "24h";

export interface MonitoringSearch {
  /** Default: {@link DEFAULT_RANGE}. */
  range?: MonitoringQuery["range"];
  /** Assistant ID. */
  assistant?: string;
}

const timeOf = (value: unknown): string | undefined => {
  const text = textOf(value);
  return text === undefined || Number.isNaN(Date.parse(text)) ? undefined : text;
};

/** Whether filters restrict the list. The run whose details are open and the target are no filters. */
export const isFiltered = (search: RunsSearch): boolean =>
  Object.entries(search).some(([name, value]) => name !== "run" && name !== "target" && value !== undefined);

export const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  validateSearch: (search): RunsSearch => ({
    status: (["active", "failed", ...STATUSES] as const).find((status) => status === search.status),
    assistant: textOf(search.assistant),
    thread: textOf(search.thread),
    since: (Object.keys(SPANS) as Span[]).find((span) => span === search.since),
    ended_from: timeOf(search.ended_from),
    ended_until: timeOf(search.ended_until),
    run: textOf(search.run),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./runs-page.tsx")),
    "RunsPage",
  ),
});

export const monitoringRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/monitoring",
  validateSearch: (search): MonitoringSearch => ({
    range: (Object.keys(RANGES) as (keyof typeof RANGES)[]).find((range) => range === search.range),
    assistant: textOf(search.assistant),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./monitoring-page.tsx")),
    "MonitoringPage",
  ),
});

export const runs: Page = {
  nav: { label: "Runs", to: "/runs", icon: Activity, scope: "agents" },
  routes: [runsRoute, monitoringRoute],
  palette: [
    {
      group: "Runs",
      find: async (asked) =>
        [
          { label: "Pending and running runs", hint: "Runs", to: "/runs?status=active" },
          { label: "Failed runs", hint: "Runs", to: "/runs?status=failed" },
          { label: "Monitoring of runs", hint: "Runs", to: "/runs/monitoring" },
        ].filter(({ label }) => asked !== "" && label.toLowerCase().includes(asked.toLowerCase())),
    },
  ],
};
