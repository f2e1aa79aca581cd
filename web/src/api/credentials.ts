import { createStore } from "../store.ts";

/** API key and workspace that requests are sent with. The key is stored only in the browser, never in a URL, a cookie or a log. */
export interface Credentials {
  key: string | undefined;
  /** ID of the selected workspace. Undefined selects the key's default workspace. */
  tenant_id: string | undefined;
  /** Whether the server rejected the credentials. The sign-in page is then shown. */
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

/** @param keep keeps the key in local storage, so that the user stays signed in after the tab closes */
export function signIn(key: string, keep: boolean): void {
  const [used, other] = keep ? [localStorage, sessionStorage] : [sessionStorage, localStorage];
  used.setItem(KEY, key);
  // Otherwise this tab or the next one would read the key of an earlier sign-in.
  other.removeItem(KEY);
  localStorage.removeItem(TENANT);
  change({ key, tenant_id: undefined, refused: false });
}

/** Removes the key. The caller must reset the query cache, which still contains the user's data. */
export function signOut(): void {
  for (const storage of [sessionStorage, localStorage]) storage.removeItem(KEY);
  localStorage.removeItem(TENANT);
  // Resets `refused`: the server's next response shows whether an API key is required.
  change({ key: undefined, tenant_id: undefined, refused: false });
}

/** @param tenant_id workspace ID; undefined selects the key's default workspace */
export function chooseWorkspace(tenant_id: string | undefined): void {
  if (tenant_id) localStorage.setItem(TENANT, tenant_id);
  else localStorage.removeItem(TENANT);
  change({ tenant_id });
}

/** Shows the sign-in page after a 401 response. A late 401 for earlier credentials is ignored. */
export function refuse({ key }: Credentials): void {
  if (key === store.get().key && !store.get().refused) change({ refused: true });
}
