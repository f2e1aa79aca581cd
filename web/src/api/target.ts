import type { Deployment } from "../../../src/control-plane/contract/records.ts";
import { createStore } from "../store.ts";

const KEY = "threadmill.target";

/** Target in the address of a page. The router writes it there, so that a link shows the same agents to everyone. */
export const targetIn = (search: string): string | undefined => /[?&]target=(?:%22)?([a-z0-9-]+)/.exec(search)?.[1];

/** Addresses of single threads, assistants and runs. Without a target, these are of this server. */
const isOfItem = ({ pathname, search }: Location): boolean =>
  /\/(threads|agents)\/(?!new$)./.test(pathname) || /[?&](thread|run)=/.test(search);

/** Slug of the deployment whose agents the pages show. Undefined for the agents of this server. The last choice is stored per browser. */
const store = createStore<string | undefined>(
  targetIn(location.search) ?? (isOfItem(location) ? undefined : (localStorage.getItem(KEY) ?? undefined)),
);

/**
 * Slug of a deployment as a target; undefined if it is not live. One with a URL of its own can be on another origin, which the browser does
 * not let the pages read.
 */
export const liveSlugOf = ({ active_revision_id, source_config }: Deployment): string | undefined =>
  active_revision_id === null ? undefined : /\/deployments\/([a-z0-9-]+)$/.exec(source_config.custom_url ?? "")?.[1];

export const target = store.get;
export const useTarget = store.use;

/** First path segments of the pages whose content depends on the target. */
const AGENT_PAGES = ["", "inbox", "agents", "threads", "runs"];

/** @param path without the path of the web app */
export const sectionOf = (path: string): string => path.split("/")[1] ?? "";
export const dependsOnTarget = (path: string): boolean => AGENT_PAGES.includes(sectionOf(path));

/** The caller must reset the query cache, which contains the agents and threads of the previous target. */
export function chooseTarget(slug: string | undefined): void {
  if (slug) localStorage.setItem(KEY, slug);
  else localStorage.removeItem(KEY);
  store.set(slug);
}
