import { createStore } from "../store.ts";

const KEY = "threadmill.target";

/** Slug of the deployment whose agents the pages show, stored per browser. Undefined for the agents of this server. */
const store = createStore<string | undefined>(localStorage.getItem(KEY) ?? undefined);

export const target = store.get;
export const useTarget = store.use;

/** The caller must reset the query cache, which contains the agents and threads of the previous target. */
export function chooseTarget(slug: string | undefined): void {
  if (slug) localStorage.setItem(KEY, slug);
  else localStorage.removeItem(KEY);
  store.set(slug);
}
