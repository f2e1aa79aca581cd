import { echoOf } from "../../platform/contract/echo.ts";
import { type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import { type FetchRules, refusalOf } from "../../platform/lib/safe-fetch.ts";

/** Addresses of a provider, by field: to all of these a user or a secret is sent. */
const FETCHED = ["auth_url", "token_url", "revocation_url", "issuer"] as const;

interface Addresses extends Partial<Record<(typeof FETCHED)[number], string | null | undefined>> {
  allowed_redirect_uris?: readonly string[] | null | undefined;
  default_redirect_uri?: string | null | undefined;
}

/** @throws InvalidRequestError that names each address which may not be fetched, or not be returned to */
export function checkAddresses(addresses: Addresses, rules: FetchRules): void {
  const parts: InvalidPart[] = [];
  const check = (
    loc: (string | number)[],
    url: string | null | undefined,
    refusal: (url: string) => string | undefined,
  ) => {
    const reason = url === null || url === undefined ? undefined : refusal(url);
    if (reason === undefined) return;
    parts.push({ type: "value_error", loc: ["body", ...loc], msg: `Value error, ${reason}`, input: echoOf(url) });
  };
  for (const field of FETCHED) check([field], addresses[field], (url) => refusalOf(url, rules));
  for (const [index, uri] of (addresses.allowed_redirect_uris ?? []).entries())
    check(["allowed_redirect_uris", index], uri, redirectRefusal);
  check(["default_redirect_uri"], addresses.default_redirect_uri, redirectRefusal);
  if (parts.length > 0) throw new InvalidRequestError(parts);
}

/** A page of an application, which may be in any network: it is never fetched, only returned to. */
function redirectRefusal(uri: string): string | undefined {
  if (!URL.canParse(uri)) return "The URI must be a whole one, such as https://example.com/callback.";
  const { protocol, username, password, hash } = new URL(uri);
  if (protocol !== "https:" && protocol !== "http:") return "The URI must begin with https:// or http://.";
  if (username !== "" || password !== "" || hash !== "")
    return "The URI must not hold a user name, a password or a fragment.";
  return undefined;
}
