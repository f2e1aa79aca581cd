import type { Mutant } from "./mutants.ts";

const DELETION = "test/http/auth-service/deletion.test.ts";
const TOKENS = "test/http/auth-service/tokens.test.ts";
const PROVIDERS = "test/http/auth-service/providers.test.ts";
const REVOCATION = "test/http/auth-service/revocation.test.ts";
const VALIDATION = "test/http/auth-service/validation.test.ts";

/** Guards of the Auth Service besides its flows. */
export const AUTH_SERVICE_MUTANTS: readonly Mutant[] = [
  {
    name: "auth service: whoever has tokens decides where those of all are sent",
    file: "src/access/http/scopes.ts",
    replace: ['["/v2/auth/providers", "providers", CHANGES],', ""],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: grants and secrets go along to another origin",
    file: "src/access/oauth/providers.ts",
    replace: ["if (!isAtAnotherOrigin(changes, found))", "if (found)"],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: an agent's account comes before the user's own",
    file: "src/access/oauth/authenticate.ts",
    replace: [
      "found.filter((token) => token.user_id === user_id),",
      "found.filter((token) => token.user_id === null),",
    ],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: a deletion of tokens leaves flows under way",
    file: "src/access/tokens/tokens.ts",
    replace: [
      "const flows = await cancelFlows(tx, whose);",
      "const flows = await cancelFlows(tx, { ...whose, user_id: newId() });",
    ],
    suites: [DELETION],
  },
  {
    name: "auth service: a deletion of tokens takes those of all users",
    file: "src/access/storage/tokens.ts",
    replace: [
      'where("tenant_id", "=", tenant_id).where("user_id", "=", user_id);\n  return provider_id',
      'where("tenant_id", "=", tenant_id).where("user_id", ">=", user_id.slice(0, 0));\n  return provider_id',
    ],
    suites: [DELETION],
  },
  {
    name: "auth service: anybody may delete a token",
    file: "src/access/tokens/tokens.ts",
    replace: ["token?.user_id === user_id ? token : undefined;", "user_id === undefined ? undefined : token;"],
    suites: [DELETION],
  },
  {
    name: "auth service: anybody may lend a token to an agent",
    file: "src/access/tokens/connections.ts",
    replace: [": token.user_id === user_id);", ": true);"],
    suites: [TOKENS],
  },
  {
    name: "auth service: a user's token goes with its last connection",
    file: "src/access/storage/tokens.ts",
    replace: ['.where("user_id", "is", null)\n      .where((e) =>', ".where((e) =>"],
    suites: [DELETION],
  },
  {
    name: "auth service: those who make a default at a time do not wait for each other",
    file: "src/access/storage/tokens.ts",
    replace: ["  await lockProvider(tx, tenant_id, provider_id);\n", ""],
    suites: [TOKENS],
  },
  {
    name: "auth service: a deletion fails with a token that cannot be read",
    file: "src/access/tokens/after-deletion.ts",
    replace: ["    } catch {\n", "    } catch (error) {\n      if (error) throw error;\n"],
    suites: [REVOCATION],
  },
  {
    name: "auth service: a provider may be anywhere",
    file: "src/access/oauth/provider-urls.ts",
    replace: ["if (parts.length > 0) throw", "if (parts.length < 0) throw"],
    suites: [PROVIDERS],
  },
  {
    name: "auth service: a refusal repeats secrets",
    file: "src/platform/contract/echo.ts",
    replace: ["if (isSecretField(field) && value", "if (!field && value"],
    suites: [VALIDATION],
  },
];
