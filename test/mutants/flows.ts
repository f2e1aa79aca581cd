import type { Mutant } from "./mutants.ts";

const FLOWS = "test/vault/flows.test.ts";
const RACES = "test/vault/flow-races.test.ts";
const REFRESH = "test/vault/refresh.test.ts";
const HTTP = "test/http/auth-service/flows.test.ts";

/** Guards of OAuth flows and tokens. */
export const FLOW_MUTANTS: readonly Mutant[] = [
  {
    name: "oauth: a state is accepted more than once",
    file: "src/access/storage/flows.ts",
    replace: ['      .where("claimed_at", "is", null)\n', ""],
    suites: [FLOWS],
  },
  {
    name: "oauth: a flow does not expire",
    file: "src/access/storage/flows.ts",
    replace: ['      .where("expires_at", ">", nowMs)\n', ""],
    suites: [FLOWS],
  },
  {
    name: "oauth: a cancelled flow stores its token",
    file: "src/access/storage/flows.ts",
    replace: [
      '      .where("claimed_at", "is not", null)\n      .where("outcome", "is", null)\n',
      '      .where("claimed_at", "is not", null)\n',
    ],
    suites: [RACES],
  },
  {
    name: "oauth: the ID of a flow is accepted as a state",
    file: "src/access/oauth/flow-callback.ts",
    replace: [
      "matchesDigest(state, flow?.state_digest ?? DUMMY_DIGEST) ? flow",
      "matchesDigest(state, DUMMY_DIGEST) || flow ? flow",
    ],
    suites: [FLOWS],
  },
  {
    name: "oauth: a state is accepted at the callback of any provider",
    file: "src/access/oauth/flow-callback.ts",
    replace: ["candidate.provider_id !== callback.provider_id", "false"],
    suites: [FLOWS],
  },
  {
    name: "oauth: any user completes a flow",
    file: "src/access/oauth/flow-callback.ts",
    replace: ["const isAllowed = !caller || (candidate && isInitiator(candidate, caller));", "const isAllowed = true;"],
    suites: [FLOWS],
  },
  {
    name: "oauth: any user waits for a flow",
    file: "src/access/oauth/flow-wait.ts",
    replace: ["if (!flow || !isInitiator(flow, caller))", "if (!flow || isInitiator === undefined)"],
    suites: [FLOWS],
  },
  {
    name: "oauth: the issuer of a callback is not checked",
    file: "src/access/oauth/oauth-client.ts",
    replace: ["iss !== undefined && provider.issuer !== null", "iss === provider.issuer"],
    suites: [FLOWS],
  },
  {
    name: "oauth: configured parameters override those of the flow",
    file: "src/access/oauth/oauth-client.ts",
    replace: [
      '  url.searchParams.set("state", request.state);\n',
      '  if (!extra.state) url.searchParams.set("state", request.state);\n',
    ],
    suites: [FLOWS],
  },
  {
    name: "oauth: any redirect URI is accepted",
    file: "src/access/oauth/flow-start.ts",
    replace: ["!allowed.includes(uri)", "allowed.includes(uri) && false"],
    suites: [FLOWS],
  },
  {
    name: "oauth: concurrent callers all refresh a token",
    file: "src/access/storage/tokens.ts",
    replace: ['      .where((e) => e.or([e("refresh_until", "is", null), e("refresh_until", "<=", nowMs)]))\n', ""],
    suites: [REFRESH],
  },
  {
    name: "oauth: waiters repeat a failed refresh",
    file: "src/access/oauth/refresh.ts",
    replace: [
      "current.refresh_holder === null && needsRefresh(context, current)",
      "current.refresh_holder === undefined",
    ],
    suites: [REFRESH],
  },
  {
    name: "oauth: a revoked token is kept",
    file: "src/access/oauth/refresh.ts",
    replace: ['reason === "invalid_grant" || profileOf', "profileOf"],
    suites: [REFRESH],
  },
  {
    name: "oauth: the refreshed token of a deleted token is not revoked",
    file: "src/access/oauth/refresh.ts",
    replace: [
      '  if (state.status === "deleted") void context.ongoing.add(revokeGrant(context, provider, secret));\n',
      "",
    ],
    suites: [REFRESH],
  },
  {
    name: "oauth: any caller requests tokens of another user",
    file: "src/access/oauth/flows.ts",
    replace: ['mayUse(caller, "service") ?', 'mayUse(caller, "tokens") ?'],
    suites: [HTTP],
  },
  {
    name: "oauth: a token of another user can be requested by ID",
    file: "src/access/oauth/flows.ts",
    replace: ["token?.user_id !== user_id || token.provider_id !== provider_id", "token?.provider_id !== provider_id"],
    suites: [HTTP],
  },
  {
    name: "oauth: the scopes of a token are not checked",
    file: "src/access/oauth/flows.ts",
    replace: [
      "return scopes.every((scope) => granted.has(scope));",
      "return scopes.every((scope) => granted || scope);",
    ],
    suites: [HTTP],
  },
  {
    name: "oauth: metadata of another server is accepted",
    file: "src/access/oauth/mcp-discovery.ts",
    replace: ["if (!matches) throw", "if (!matches && !url) throw"],
    suites: ["test/vault/discovery.test.ts"],
  },
  {
    name: "oauth: a verifier is stored in plain text",
    file: "src/access/oauth/flow-start.ts",
    replace: ["context.seal.seal(verifier, verifierAad({ tenant_id, auth_id }))", "verifier"],
    suites: ["test/vault/flow-canary.test.ts", FLOWS],
  },
  {
    name: "oauth: a stop does not wait for a refresh",
    file: "src/access/oauth/refresh.ts",
    replace: [
      "return context.ongoing.add(refreshLeased(context, provider, leased, holder));",
      "return refreshLeased(context, provider, leased, holder);",
    ],
    suites: [REFRESH],
  },
];
