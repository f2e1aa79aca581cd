import type { Mutant } from "./mutants.ts";

/** Guards that keep the users of an authentication module, and the users of crons, apart. */
export const CUSTOM_AUTH_MUTANTS: readonly Mutant[] = [
  {
    name: "custom auth: the client of a route has all access with any key",
    file: "src/access/http/auth.ts",
    replace: ['!this.#options.custom || caller.user !== undefined || mayUse(caller, "admin");', "true;"],
    suites: ["test/http/custom-auth/custom-routes.test.ts"],
  },
  {
    name: "custom auth: pages of other origins use the cookies of their visitors",
    file: "src/agent-server/auth/custom-auth.ts",
    replace: ['kept.delete("cookie");', ""],
    suites: ["test/http/custom-auth/cookies.test.ts"],
  },
  {
    name: "custom auth: a JWT without a workspace is refused",
    file: "src/access/access.ts",
    replace: ['new Set(["unauthorized", "no_workspace", "workspace_needed"])', 'new Set(["unauthorized"])'],
    suites: ["test/http/custom-auth/jwt.test.ts"],
  },
  {
    name: "crons: a caller changes what runs with the permissions of another user",
    file: "src/agent-server/crons/crons.ts",
    replace: ["...(isChanged && userOf(caller)),", ""],
    suites: ["test/http/crons.test.ts"],
  },
  {
    name: "custom auth: an app in an app needs no key",
    file: "src/app/custom-routes.ts",
    replace: ['requires_auth && context.req.method !== "OPTIONS"', 'false && context.req.method !== "OPTIONS"'],
    suites: ["test/http/custom-routes.test.ts"],
  },
  {
    name: "custom auth: an encoded slash leads to a route of an app without a key",
    file: "src/app/custom-routes.ts",
    replace: ['found === "route" || decoded === path ? found', "true ? found"],
    suites: ["test/http/python-app.test.ts"],
  },
  {
    name: "custom auth: a paused call of MCP is not authorized",
    file: "src/agent-server/protocols/mcp/tool-calls.ts",
    replace: ["return !access || (await findThread(read, tenant_id, thread_id, access)) ? run", "return true ? run"],
    suites: ["test/http/custom-auth/handlers.test.ts"],
  },
];
