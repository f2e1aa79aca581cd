import type { Mutant } from "./mutants.ts";

const FLOWS = "test/vault/flows.test.ts";
const RACES = "test/vault/flow-races.test.ts";
const REFRESH = "test/vault/refresh.test.ts";
const HTTP = "test/http/auth-service/flows.test.ts";

/** Guards of OAuth flows and tokens. */
export const FLOW_MUTANTS: readonly Mutant[] = [
  {
    name: "a state is good for more than one callback",
    file: "src/access/storage/flows.ts",
    replace: ['      .where("claimed_at", "is", null)\n', ""],
    suites: [FLOWS],
  },
  {
    name: "a flow has no end",
    file: "src/access/storage/flows.ts",
    replace: ['      .where("expires_at", ">", nowMs)\n', ""],
    suites: [FLOWS],
  },
  {
    name: "a cancelled flow stores its token",
    file: "src/access/storage/flows.ts",
    replace: [
      '      .where("claimed_at", "is not", null)\n      .where("outcome", "is", null)\n',
      '      .where("claimed_at", "is not", null)\n',
    ],
    suites: [RACES],
  },
  {
    name: "the flow's id is enough of a state",
    file: "src/access/oauth/flow-return.ts",
    replace: ["timingSafeEqual(Buffer.from(known), Buffer.from(given)) ? flow", "known !== given || flow ? flow"],
    suites: [FLOWS],
  },
  {
    name: "a state is good at the callback of any provider",
    file: "src/access/oauth/flow-return.ts",
    replace: ["named.provider_id !== returned.provider_id", "false"],
    suites: [FLOWS],
  },
  {
    name: "anybody may pass on a code",
    file: "src/access/oauth/flow-return.ts",
    replace: ["const isTheirs = !caller || (named && isInitiator(named, caller));", "const isTheirs = true;"],
    suites: [FLOWS],
  },
  {
    name: "anybody may wait for a flow",
    file: "src/access/oauth/flow-wait.ts",
    replace: ["if (!flow || !isInitiator(flow, caller))", "if (!flow || isInitiator === undefined)"],
    suites: [FLOWS],
  },
  {
    name: "who sent the user back is not looked at",
    file: "src/access/oauth/client.ts",
    replace: ["back.iss !== undefined && provider.issuer !== null", "back.iss === provider.issuer"],
    suites: [FLOWS],
  },
  {
    name: "what a provider is configured to be sent comes last",
    file: "src/access/oauth/client.ts",
    replace: [
      '  url.searchParams.set("state", request.state);\n',
      '  if (!extra.state) url.searchParams.set("state", request.state);\n',
    ],
    suites: [FLOWS],
  },
  {
    name: "a redirect URI need not be among the allowed ones",
    file: "src/access/oauth/flow-start.ts",
    replace: ["!allowed.includes(uri)", "allowed.includes(uri) && false"],
    suites: [FLOWS],
  },
  {
    name: "everybody who asks refreshes a token",
    file: "src/access/storage/tokens.ts",
    replace: ['      .where((e) => e.or([e("refresh_until", "is", null), e("refresh_until", "<=", nowMs)]))\n', ""],
    suites: [REFRESH],
  },
  {
    name: "who waited for a refresh that failed tries once more",
    file: "src/access/oauth/refresh.ts",
    replace: ["after.refresh_holder === null && isDue(context, after)", "after.refresh_holder === undefined"],
    suites: [REFRESH],
  },
  {
    name: "a withdrawn token is kept",
    file: "src/access/oauth/refresh.ts",
    replace: ['reason === "invalid_grant" || quirksOf', "quirksOf"],
    suites: [REFRESH],
  },
  {
    name: "what a deleted token was refreshed to lives on at the provider",
    file: "src/access/oauth/refresh.ts",
    replace: ["  void revokeQuietly(context, provider, secret);\n", ""],
    suites: [REFRESH],
  },
  {
    name: "anybody may name the user a token is asked for",
    file: "src/access/oauth/authenticate.ts",
    replace: ['mayUse(caller, "service") ?', 'mayUse(caller, "tokens") ?'],
    suites: [HTTP],
  },
  {
    name: "a token of somebody else may be named",
    file: "src/access/oauth/authenticate.ts",
    replace: ["token?.user_id !== user_id || token.provider_id !== provider_id", "token?.provider_id !== provider_id"],
    suites: [HTTP],
  },
  {
    name: "a token need not cover the scopes",
    file: "src/access/oauth/authenticate.ts",
    replace: [
      "return scopes.every((scope) => granted.has(scope));",
      "return scopes.every((scope) => granted || scope);",
    ],
    suites: [HTTP],
  },
  {
    name: "metadata may speak of another server",
    file: "src/access/oauth/discovery.ts",
    replace: ["if (!isOurs) throw", "if (!isOurs && !named) throw"],
    suites: ["test/vault/discovery.test.ts"],
  },
  {
    name: "a verifier is stored as it is",
    file: "src/access/oauth/flow-start.ts",
    replace: ["context.seal.seal(verifier, verifierPlace({ tenant_id, auth_id }))", "verifier"],
    suites: ["test/vault/flow-canary.test.ts", FLOWS],
  },
];
