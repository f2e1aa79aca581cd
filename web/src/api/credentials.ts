import { useSyncExternalStore } from "react";

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

let current: Credentials = {
  key: sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? undefined,
  tenant_id: localStorage.getItem(TENANT) ?? undefined,
  refused: false,
};
const listeners = new Set<() => void>();

function change(changed: Partial<Credentials>): void {
  current = { ...current, ...changed };
  for (const listener of listeners) listener();
}

export const credentials = (): Credentials => current;

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

/** Called with the credentials of a request that failed with 401. An old response does not reject newer credentials. */
export function refuse(refused: Credentials): void {
  if (refused.key === current.key && !current.refused) change({ refused: true });
}

export const useCredentials = (): Credentials =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
