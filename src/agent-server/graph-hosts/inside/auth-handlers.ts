import type { AuthUser, MetadataFilter } from "../../../platform/contract/caller.ts";
import type { AuthDecision, AuthQuery, AuthRefusal } from "../auth-queries.ts";
import type { Auth } from "./loading/auth.ts";

type Answer = string[] | { user: string } | AuthDecision | AuthRefusal;

/** @throws Error when a handler fails or returns an invalid value */
export async function answerAuth(auth: Auth, query: AuthQuery): Promise<Answer> {
  if (query.kind === "auth_handlers") return Object.keys(auth.callbacks);
  try {
    return query.kind === "authenticate" ? await authenticate(auth, query) : await authorize(auth, query);
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal) return refusal;
    throw error;
  }
}

const refuse = (status: number, message: string, headers = {}): AuthRefusal => ({
  refused: { status, message, headers },
});

async function authenticate(
  auth: Auth,
  { method, url, headers }: Extract<AuthQuery, { kind: "authenticate" }>,
): Promise<{ user: string } | AuthRefusal> {
  const request = requestOf(url, { method, headers });
  if (!request)
    return refuse(
      400,
      "This request method or this URL is not supported. Methods such as TRACE, and URLs that contain a user name or password, are refused.",
    );
  const returned = await auth.authenticate(request);
  if (!returned) return refuse(401, "Unauthorized");
  const user = userOf(returned);
  return user.is_authenticated ? { user: JSON.stringify(user) } : refuse(401, "Unauthorized");
}

/** Returns undefined for methods such as TRACE, and for URLs that contain a user name. */
function requestOf(url: string, init: RequestInit): Request | undefined {
  try {
    return new Request(url, init);
  } catch {
    return undefined;
  }
}

/** Longer identities do not fit in a Postgres index. */
const MAX_IDENTITY_LENGTH = 500;

function userOf(returned: unknown): AuthUser {
  const given = typeof returned === "string" ? { identity: returned } : (returned as Partial<AuthUser>);
  const { identity, permissions = [], is_authenticated = true, display_name = identity } = given;
  if (typeof identity !== "string" || identity === "" || identity.length > MAX_IDENTITY_LENGTH)
    throw new Error(`authenticate must return the identity as a string of 1 to ${MAX_IDENTITY_LENGTH} characters`);
  if (!Array.isArray(permissions) || !permissions.every((permission) => typeof permission === "string"))
    throw new Error("authenticate must return the permissions as a list of strings");
  return { ...given, identity, permissions, is_authenticated, display_name: String(display_name) };
}

/** At most one handler decides: that of the event, else of the resource, else of the action, else the handler for all events. */
async function authorize(
  { callbacks }: Auth,
  { event, user: userText, value: valueText }: Extract<AuthQuery, { kind: "authorize" }>,
): Promise<AuthDecision | AuthRefusal> {
  const [resource, action] = event.split(":");
  const name = [event, resource, `*:${action}`, "*"].find((key) => Object.hasOwn(callbacks, key as string)) ?? "";
  const user = JSON.parse(userText) as AuthUser;
  const value: unknown = JSON.parse(valueText);
  const { permissions } = user;
  const returned = await callbacks[name]?.({ event, resource, action, value, user, permissions });
  if (returned === false) return refuse(403, "Forbidden");
  const filter = returned === undefined || returned === null || returned === true ? undefined : filterOf(returned);
  return { value: JSON.stringify(value), filter };
}

/** @throws Error if the filter contains an unsupported value, such as undefined, which would otherwise select every record */
function filterOf(returned: unknown): MetadataFilter {
  const proto = typeof returned === "object" && returned !== null ? Object.getPrototypeOf(returned) : undefined;
  if (proto !== Object.prototype && proto !== null) throw invalidFilter("a filter", returned);
  const all = Object.entries(returned as object).map(([key, expected]): MetadataFilter => {
    if (key === "$and" || key === "$or") {
      if (!Array.isArray(expected)) throw invalidFilter(key, expected);
      const parts = expected.map(filterOf);
      return key === "$or" ? { any: parts } : { all: parts };
    }
    if (key.startsWith("$")) throw invalidFilter("an operator", key);
    return { all: conditionsOf(expected).map((value) => ({ contains: { [key]: value } })) };
  });
  return { all };
}

/** Returns the values that the metadata must contain under the key of a condition. */
function conditionsOf(expected: unknown): unknown[] {
  if (isScalar(expected)) return [expected];
  const operators = typeof expected === "object" && expected !== null ? Object.entries(expected) : [];
  if (operators.length === 0) throw invalidFilter("a value", expected);
  return operators.map(([operator, value]) => {
    const list = Array.isArray(value) ? value : [value];
    if (operator === "$eq" && isScalar(value)) return value;
    if (operator === "$contains" && list.length > 0 && list.every(isScalar)) return list;
    throw invalidFilter(operator, value);
  });
}

const isScalar = (value: unknown): boolean =>
  value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

const invalidFilter = (name: string, value: unknown): Error =>
  new Error(
    `the handler returned an invalid filter (${name}: ${JSON.stringify(value) ?? String(value)}). Return true, false, or a filter object. The values of a filter object must be strings, numbers, booleans, null, or objects with one or both of the operators $eq and $contains. Only the values of the keys $or and $and must be lists of filter objects`,
  );

/** Headers that describe the body or the connection, which the service sets. */
const OWN_HEADERS = /^(content-.*|transfer-encoding|connection|keep-alive|upgrade|trailer|date)$/i;

/** Returns undefined unless the error is an HTTPException with an error status (400 to 599). */
function refusalOf(error: unknown): AuthRefusal | undefined {
  if (!isHttpException(error)) return undefined;
  const { status, message, headers } = error;
  if (!Number.isInteger(status) || status < 400 || status > 599) return undefined;
  const kept = [...new Headers(headers)].filter(([name]) => !OWN_HEADERS.test(name));
  return refuse(status, message, Object.fromEntries(kept));
}

/** Compares the class name, because the project may have several copies of the package. */
function isHttpException(error: unknown): error is Error & { status: number; headers?: Record<string, string> } {
  for (let proto = error; proto instanceof Error; proto = Object.getPrototypeOf(proto))
    if (proto.constructor.name === "HTTPException") return true;
  return false;
}
