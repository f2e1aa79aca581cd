/** An instance that takes requests. */
export interface Upstream {
  instance_id: string;
  /** `http://127.0.0.1:port`, without a slash at the end. */
  address: string;
  /** What the instance asks of its callers, in the clear. */
  api_key: string;
}

/**
 * Sends the requests of deployments to their instances. It lives in the process and keeps no truth: when it starts, and at each
 * hint `deployment` of another process, it reads which instances of the active revision are `ready`. What the reconciler of its own
 * process tells it comes first and at once.
 */
export interface Router {
  /**
   * From the return of this call on, new requests go to these instances and to no others; those in flight stay where they are. No
   * upstreams: there is a deployment, and nobody to answer for it at the moment. Safe to repeat.
   */
  activate(deployment_id: string, upstreams: readonly Upstream[]): void;
  /** There is no such deployment any more. Safe to repeat. */
  deactivate(deployment_id: string): void;
  /**
   * Requests, streams and sockets that an instance has yet to end. Infinity where other processes route as well, so that nobody
   * can say: then it is drained by time.
   */
  inFlight(instance_id: string): number;
}
