export interface Upstream {
  instance_id: string;
  /** `http://127.0.0.1:port`, without a slash at the end. */
  address: string;
  /** The key that the instance requires of its callers, decrypted. */
  api_key: string;
}

/**
 * Sends the requests of deployments to their instances. Its state is a cache: it reads the ready instances of the active revision at
 * the start and at each hint `deployment`. Routes that the reconciler of the same process sets take effect at once and take
 * precedence.
 */
export interface Router {
  /**
   * Sends new requests to these instances only, from the return of the call on. Requests in flight are not affected. Without
   * upstreams, requests wait for an instance. Idempotent.
   */
  activate(deployment_id: string, upstreams: readonly Upstream[]): void;
  /** Removes the route of a deleted deployment. Idempotent. */
  deactivate(deployment_id: string): void;
  /**
   * The requests, streams and sockets in flight at an instance. Infinity when other processes route, too, so that the number is
   * unknown; the instance is then drained by time.
   */
  inFlight(instance_id: string): number;
}
