/** What a service may be asked to fetch for a caller. */
export interface FetchRules {
  /** Permits http and https to loopback addresses, for development and tests. */
  allow_loopback: boolean;
}

/** Fetches a URL that a caller named. Rejects with a FetchRefusedError where the rules forbid it. */
export type SafeFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
