import type { Mutant } from "./mutants.ts";

const DELETION = "test/http/auth-service/deletion.test.ts";
const TOKENS = "test/http/auth-service/tokens.test.ts";
const PROVIDERS = "test/http/auth-service/providers.test.ts";
const REVOCATION = "test/http/auth-service/revocation.test.ts";
const VALIDATION = "test/http/auth-service/validation.test.ts";

/** Guards of the Auth Service besides its flows. */
export const AUTH_SERVICE_MUTANTS: readonly Mutant[] = [
  {
    name: "auth service: any caller changes the URLs of a provider",
    file: "src/access/http/scopes.ts",
    replace: ['["/v2/auth/providers", "providers", WRITE_METHODS],', ""],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: redirects send grants and secrets to another origin",
    file: "src/access/oauth/providers.ts",
    replace: ["if (!isElsewhere) {", "if (found) {"],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: revocations send grants and secrets to another origin",
    file: "src/access/oauth/providers.ts",
    replace: [
      "if (revocation_url === undefined || revocation_url === null) return false;",
      "if (!revocation_url || row) return false;",
    ],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: an agent's connection precedes the user's default token",
    file: "src/access/oauth/flows.ts",
    replace: [
      "found.filter((token) => token.user_id === user_id),",
      "found.filter((token) => token.user_id === null),",
    ],
    suites: ["test/security/providers.test.ts"],
  },
  {
    name: "auth service: a deletion of tokens does not cancel pending flows",
    file: "src/access/tokens/tokens.ts",
    replace: [
      "const flows = await cancelFlows(tx, selection);",
      "const flows = await cancelFlows(tx, { ...selection, user_id: newId() });",
    ],
    suites: [DELETION],
  },
  {
    name: "auth service: a deletion of tokens deletes those of all users",
    file: "src/access/storage/tokens.ts",
    replace: [
      'where("tenant_id", "=", tenant_id).where("user_id", "=", user_id);\n  return provider_id',
      'where("tenant_id", "=", tenant_id).where("user_id", ">=", user_id.slice(0, 0));\n  return provider_id',
    ],
    suites: [DELETION],
  },
  {
    name: "auth service: any user deletes a token",
    file: "src/access/tokens/tokens.ts",
    replace: ["token?.user_id === user_id ? token : undefined;", "user_id === undefined ? undefined : token;"],
    suites: [DELETION],
  },
  {
    name: "auth service: any user connects a token to an agent",
    file: "src/access/tokens/connections.ts",
    replace: [": token.user_id === user_id);", ": true);"],
    suites: [TOKENS],
  },
  {
    name: "auth service: a user's token is deleted with its last connection",
    file: "src/access/storage/tokens.ts",
    replace: ['.where("user_id", "is", null)\n      .where((e) =>', ".where((e) =>"],
    suites: [DELETION],
  },
  {
    name: "auth service: concurrent changes of the default token are not serialized",
    file: "src/access/storage/tokens.ts",
    replace: ["  await lockProvider(tx, tenant_id, provider_id);\n", ""],
    suites: [TOKENS],
  },
  {
    name: "auth service: a deletion fails on a token that cannot be decrypted",
    file: "src/access/oauth/revocation.ts",
    replace: ["    } catch {\n", "    } catch (error) {\n      if (error) throw error;\n"],
    suites: [REVOCATION],
  },
  {
    name: "auth service: a provider may have any address",
    file: "src/access/oauth/providers.ts",
    replace: ["if (parts.length > 0) throw", "if (parts.length < 0) throw"],
    suites: [PROVIDERS],
  },
  {
    name: "auth service: validation errors contain secrets",
    file: "src/platform/contract/validation-errors.ts",
    replace: ["if (isSecretField(field) && value", "if (!field && value"],
    suites: [VALIDATION],
  },
];
