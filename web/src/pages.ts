import type { Page } from "./page.ts";
import { agents } from "./pages/agents/page.ts";
import { connections } from "./pages/connections/page.ts";
import { deployments } from "./pages/deployments/page.ts";
import { experiments } from "./pages/experiments/page.ts";
import { prompts } from "./pages/prompts/page.ts";
import { queues } from "./pages/queues/page.ts";
import { runs } from "./pages/runs/page.ts";
import { settings } from "./pages/settings/page.ts";
import { inbox, threads } from "./pages/threads/page.ts";
import { traces } from "./pages/traces/page.ts";

export const pages: readonly Page[] = [
  inbox,
  agents,
  threads,
  runs,
  traces,
  experiments,
  queues,
  prompts,
  deployments,
  connections,
  settings,
];
