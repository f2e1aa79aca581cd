/**
 * Tells an instance that its roll-out has the traffic: from then on its instances execute the runs of the deployment, and those
 * that served before take none any more. Safe to repeat.
 *
 * @throws Error when it did not get there
 */
export type Activate = (instance: { address: string; api_key: string }) => Promise<void>;

/** Over HTTP. An image that is no Threadmill does not know the path, and executes runs without being told. */
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
    if (response.status >= 500) throw new Error(`An instance answered ${response.status} when it was to take over.`);
  };
