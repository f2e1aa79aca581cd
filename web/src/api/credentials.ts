import { useSyncExternalStore } from "react";

/** What requests show of who calls. The key is in no address, no cookie and no log: only in this browser's storage. */
export interface Credentials {
  key: string | undefined;
  /** The workspace that was chosen; undefined for the key's own. */
  tenant_id: string | undefined;
  /** The server refused what it was shown: the sign-in page is up. */
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

/** @param keep in this browser beyond this tab */
export function signIn(key: string, keep: boolean): void {
  (keep ? localStorage : sessionStorage).setItem(KEY, key);
  localStorage.removeItem(TENANT);
  change({ key, tenant_id: undefined, refused: false });
}

/** Forgets the key. The caller resets the queries, so that nothing is left of what was seen with it. */
export function signOut(): void {
  for (const storage of [sessionStorage, localStorage]) storage.removeItem(KEY);
  localStorage.removeItem(TENANT);
  // Whether it lets people in without a key the server says, when it is asked next.
  change({ key: undefined, tenant_id: undefined, refused: false });
}

/** @param tenant_id undefined for the key's own */
export function chooseWorkspace(tenant_id: string | undefined): void {
  if (tenant_id) localStorage.setItem(TENANT, tenant_id);
  else localStorage.removeItem(TENANT);
  change({ tenant_id });
}

/** Called with the credentials of a request that was answered 401: newer ones are not refused by an old answer. */
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
