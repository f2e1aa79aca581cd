import { createStore } from "../store.ts";

/** The credentials of requests. The key is stored in the browser only, never in a URL, a cookie or a log. */
export interface Credentials {
  key: string | undefined;
  /** The selected workspace; undefined for the default workspace of the key. */
  tenant_id: string | undefined;
  /** The server rejected the credentials: the sign-in page is shown. */
  refused: boolean;
}

const KEY = "threadmill.key";
const TENANT = "threadmill.workspace";

const store = createStore<Credentials>({
  key: sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? undefined,
  tenant_id: localStorage.getItem(TENANT) ?? undefined,
  refused: false,
});
const change = (changed: Partial<Credentials>): void => store.set({ ...store.get(), ...changed });

export const credentials = store.get;
export const useCredentials = store.use;

/** @param keep stores the key beyond the session of this tab */
export function signIn(key: string, keep: boolean): void {
  (keep ? localStorage : sessionStorage).setItem(KEY, key);
  localStorage.removeItem(TENANT);
  change({ key, tenant_id: undefined, refused: false });
}

/** Removes the key. The caller resets the queries, so that no data of the user is left. */
export function signOut(): void {
  for (const storage of [sessionStorage, localStorage]) storage.removeItem(KEY);
  localStorage.removeItem(TENANT);
  // The next request shows whether the server requires a key.
  change({ key: undefined, tenant_id: undefined, refused: false });
}

/** @param tenant_id undefined for the default workspace of the key */
export function chooseWorkspace(tenant_id: string | undefined): void {
  if (tenant_id) localStorage.setItem(TENANT, tenant_id);
  else localStorage.removeItem(TENANT);
  change({ tenant_id });
}

/** Shows the sign-in page after a 401. Ignores a late response to a request with other credentials. */
export function refuse({ key }: Credentials): void {
  if (key === store.get().key && !store.get().refused) change({ refused: true });
}
