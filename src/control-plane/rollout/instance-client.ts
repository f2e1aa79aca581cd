import { CUSTOM_AUTH_HEADER } from "../../platform/contract/caller.ts";

export interface Readiness {
  /** Undefined if the instance is ready; otherwise the reason, worded to follow "/ok ". */
  failure: string | undefined;
  /** Whether the instance authenticates users with handlers of the project. */
  custom_auth?: boolean;
}

export type CheckReady = (address: string) => Promise<Readiness>;

export const checkReadyOverHttp =
  (timeout_ms: number): CheckReady =>
  async (address) => {
    try {
      const signal = AbortSignal.timeout(timeout_ms);
      const response = await fetch(`${address}/ok`, { signal, redirect: "manual" });
      await response.body?.cancel();
      if (response.status !== 200) return { failure: `returned status ${response.status}` };
      return { failure: undefined, custom_auth: response.headers.has(CUSTOM_AUTH_HEADER) };
    } catch (error) {
      if ((error as Error).name === "TimeoutError") return { failure: `did not respond within ${timeout_ms / 1000} s` };
      return { failure: "could not be reached" };
    }
  };

/**
 * Activates the rollout of an instance. From then on, the rollout's instances execute the runs of the deployment, and instances of
 * earlier rollouts claim no more runs. Idempotent.
 */
export type Activate = (instance: { address: string; api_key: string }) => Promise<void>;

/** A status below 500 means success: images without Threadmill do not serve this path and execute runs without activation. */
export const activateOverHttp =
  (timeout_ms: number): Activate =>
  async ({ address, api_key }) => {
    const response = await fetch(`${address}/internal/activation`, {
      method: "POST",
      headers: { "x-api-key": api_key },
      signal: AbortSignal.timeout(timeout_ms),
      redirect: "manual",
    });
    await response.body?.cancel();
    if (response.status >= 500)
      throw new Error(`The activation request to the instance failed with status ${response.status}.`);
  };
