import type { Mutant } from "./mutants.ts";

const suite = (name: string) => `test/control/router/${name}.test.ts`;

/** Guards of the router. */
export const ROUTER_MUTANTS: readonly Mutant[] = [
  {
    name: "the router counts a request only until it is sent",
    file: "src/control-plane/router/deployment-router.ts",
    replace: [
      "await attempt(target, sent !== undefined).finally(() => this.#inFlight.leave(target));",
      "await (this.#inFlight.leave(target), attempt(target, sent !== undefined));",
    ],
    suites: [suite("switch")],
  },
  {
    name: "the router keeps the headers of a stream for the first of its body",
    file: "src/control-plane/router/relay.ts",
    replace: ["response.flushHeaders();", ";"],
    suites: [suite("streaming")],
  },
  {
    name: "the router ends an answer that has broken off as if it were whole",
    file: "src/control-plane/router/relay.ts",
    replace: ['answer.once("error", () => response.destroy());', 'answer.once("error", () => response.end());'],
    suites: [suite("streaming")],
  },
  {
    name: "the router leaves the instance at work for a client that is gone",
    file: "src/control-plane/router/relay.ts",
    replace: ["if (!response.writableFinished) sent.destroy();", ";"],
    suites: [suite("streaming")],
  },
  {
    name: "the router repeats what may have been done",
    file: "src/control-plane/router/deployment-router.ts",
    replace: ['REPEATABLE.has(request.method ?? "") && !hasBody(request)', "!hasBody(request)"],
    suites: [suite("retry")],
  },
  {
    name: "the router does not say that a body comes in chunks",
    file: "src/control-plane/router/headers.ts",
    replace: ['if (headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];', ""],
    suites: [suite("hygiene")],
  },
  {
    name: "the router passes on what the caller has shown",
    file: "src/control-plane/router/headers.ts",
    replace: ['  "authorization",\n', ""],
    suites: [suite("access")],
  },
  {
    name: "the router lets a page that comes by a path act as the web app",
    file: "src/control-plane/router/headers.ts",
    replace: [
      'if (isBelow) kept.push("Content-Security-Policy", "sandbox"',
      'if (isBelow) kept.push("X-Nothing", "sandbox"',
    ],
    suites: [suite("access")],
  },
  {
    name: "the router says without a key which deployments are there",
    file: "src/app/deployment-front.ts",
    replace: ["if (isPreflight(request)) return this.#permit(request, response, reader);", ""],
    suites: [suite("access")],
  },
  {
    name: "the router lets callers of other workspaces in",
    file: "src/app/deployment-front.ts",
    replace: ["if (!deployment || caller.tenant_id !== deployment.tenant_id)", "if (!deployment)"],
    suites: [suite("access")],
  },
  {
    name: "the router's streams go on after their key was revoked",
    file: "src/app/deployment-front.ts",
    replace: ["onAccessEnd(() => response.destroy())", "() => undefined"],
    suites: ["test/security/open-proxied-streams.test.ts"],
  },
  {
    name: "the router passes on paths that lead upwards",
    file: "src/app/deployment-front.ts",
    replace: ["if (!isPlain(address.path))", "if (!isPlain(address.path) && !address)"],
    suites: [suite("addresses")],
  },
  {
    name: "the router lets pages of any origin open WebSockets",
    file: "src/app/deployment-front.ts",
    replace: [
      "this.#admit(address, request, await this.#readerOf(address, request))",
      'this.#admit(address, request, "*")',
    ],
    suites: [suite("web-sockets")],
  },
  {
    name: "the router believes rows rather than its own reconciler",
    file: "src/control-plane/router/route-reader.ts",
    replace: ["return !this.#isAlone && this.#options.clock.now() - told_at > TOLD_MS;", "return true;"],
    suites: [suite("rows")],
  },
  {
    name: "the router takes instances of a roll-out that is under way",
    file: "src/control-plane/storage/routes.ts",
    replace: ['e("i.rollout", "<>", e.ref("r.deploying_at"))', 'e("i.rollout", "is not", null)'],
    suites: [suite("rows")],
  },
];
