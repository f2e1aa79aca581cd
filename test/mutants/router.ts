import type { Mutant } from "./mutants.ts";

const suite = (name: string) => `test/control/router/${name}.test.ts`;

/** Guards of the router. */
export const ROUTER_MUTANTS: readonly Mutant[] = [
  {
    name: "router: a status that cannot be sent ends the service",
    file: "src/control-plane/router/relay.ts",
    replace: ["if (Number(answer.statusCode) < 200)", "if (Number(answer.statusCode) < 0)"],
    suites: [suite("hygiene")],
  },
  {
    name: "router: a request is counted only until it is sent",
    file: "src/control-plane/router/deployment-router.ts",
    replace: [
      "await this.#counted(target, () => attempt(target, sent !== undefined));",
      "await (this.#inFlight.release(target), attempt(target, sent !== undefined));",
    ],
    suites: [suite("switch")],
  },
  {
    name: "router: the headers of a stream wait for the first byte of the body",
    file: "src/control-plane/router/relay.ts",
    replace: ["response.flushHeaders();", ";"],
    suites: [suite("streaming")],
  },
  {
    name: "router: an aborted response ends as if it were complete",
    file: "src/control-plane/router/relay.ts",
    replace: ['answer.once("error", () => response.destroy());', 'answer.once("error", () => response.end());'],
    suites: [suite("streaming")],
  },
  {
    name: "router: a closed client connection does not abort the request to the instance",
    file: "src/control-plane/router/relay.ts",
    replace: ["if (!response.writableFinished) sent.destroy();", ";"],
    suites: [suite("streaming")],
  },
  {
    name: "router: a request that may have been processed is retried",
    file: "src/control-plane/router/deployment-router.ts",
    replace: ['IDEMPOTENT.has(request.method ?? "") && !hasBody(request)', "!hasBody(request)"],
    suites: [suite("retry")],
  },
  {
    name: "router: Transfer-Encoding is not forwarded",
    file: "src/control-plane/router/headers.ts",
    replace: ['if (headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];', ""],
    suites: [suite("hygiene")],
  },
  {
    name: "router: credentials of the caller are forwarded",
    file: "src/control-plane/router/headers.ts",
    replace: ['(identity === "own" || !CREDENTIAL_HEADERS.has(name)) &&', ""],
    suites: [suite("access")],
  },
  {
    name: "router: a page on a path can act as the web app",
    file: "src/control-plane/router/headers.ts",
    replace: [
      'if (isBelow) kept.push("Content-Security-Policy", "sandbox"',
      'if (isBelow) kept.push("X-Nothing", "sandbox"',
    ],
    suites: [suite("access")],
  },
  {
    name: "router: preflights reveal which deployments exist",
    file: "src/app/deployment-front.ts",
    replace: ["if (isPreflight(request)) return this.#answerPreflight(request, response, allowed_origin);", ""],
    suites: [suite("access")],
  },
  {
    name: "router: callers of other workspaces are accepted",
    file: "src/app/deployment-front.ts",
    replace: ["if (!deployment || (caller && caller.tenant_id !== deployment.tenant_id))", "if (!deployment)"],
    suites: [suite("access")],
  },
  {
    name: "router: streams continue after their key was revoked",
    file: "src/app/deployment-front.ts",
    replace: ["onAccessEnd(() => response.destroy())", "() => undefined"],
    suites: ["test/security/open-proxied-streams.test.ts"],
  },
  {
    name: "router: paths with .. are forwarded",
    file: "src/app/deployment-front.ts",
    replace: ["if (!isNormalizedPath(address.path))", "if (!isNormalizedPath(address.path) && !address)"],
    suites: [suite("addresses")],
  },
  {
    name: "router: pages of any origin open WebSockets",
    file: "src/app/deployment-front.ts",
    replace: [
      "this.#admit(address, request, await this.#allowedOrigin(address, request))",
      'this.#admit(address, request, "*")',
    ],
    suites: [suite("web-sockets")],
  },
  {
    name: "router: routes in the database override those of the local reconciler",
    file: "src/control-plane/router/routes.ts",
    replace: [
      "return !this.#isSingleProcess && this.#options.clock.now() - local_set_at > LOCAL_ROUTE_TTL_MS;",
      "return true;",
    ],
    suites: [suite("rows")],
  },
  {
    name: "router: instances of a rollout in progress get requests",
    file: "src/control-plane/storage/instances.ts",
    replace: ['e("i.rollout", "<>", e.ref("r.deploying_at"))', 'e("i.rollout", "is not", null)'],
    suites: [suite("rows")],
  },
];
