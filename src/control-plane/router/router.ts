export interface Upstream {
  instance_id: string;
  /** Address such as `http://127.0.0.1:port`, without a trailing slash. */
  address: string;
  /** Decrypted API key that the instance requires from its callers. */
  api_key: string;
  /** Whether the instance authenticates users itself, with handlers of the project. */
  custom_auth?: boolean;
}

/**
 * Sends the requests of deployments to their instances. The state is a cache: the router reads the ready instances of the active
 * revision at the first request and on each hint `deployment`. Routes from the reconciler of the same process take effect immediately and
 * take precedence.
 */
export interface Router {
  /**
   * Sends new requests only to these instances as soon as the call returns. Requests in flight are not affected. If there are no
   * upstreams, requests wait for an instance. Idempotent.
   */
  activate(deployment_id: string, upstreams: readonly Upstream[]): void;
  /** Removes the route of a deleted deployment. Idempotent. */
  deactivate(deployment_id: string): void;
  /**
   * Number of requests, streams and sockets in flight at an instance. Infinity if other processes also route requests, because the
   * number is then unknown. Such an instance is stopped at the end of its drain time.
   */
  inFlight(instance_id: string): number;
}
