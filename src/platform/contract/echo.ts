/** Values whose JSON is longer than this are not repeated to the caller. */
const MAX_CHARS = 1000;

/** Fields that hold a secret: what stands in them is never repeated, neither alone nor within an object. */
const SECRETS = new Set(["access_token", "refresh_token", "client_secret", "secrets"]);

/** What stands for a secret; pydantic writes its own secrets like this. */
const MASK = "**********";

export const isSecretField = (name: string | number | undefined): boolean => SECRETS.has(String(name));

/**
 * What a refusal repeats of a value that the caller sent: the value with its secrets masked, or undefined when it is large.
 * Looks at no more of a large value than it takes to see that it is one.
 */
export function echoOf(value: unknown, field?: string | number): unknown {
  const budget = { chars: MAX_CHARS };
  const copy = copyOf(value, field, budget);
  return budget.chars < 0 ? undefined : copy;
}

function copyOf(value: unknown, field: string | number | undefined, budget: { chars: number }): unknown {
  if (isSecretField(field) && value !== null && value !== undefined) return MASK;
  if (typeof value !== "object" || value === null) {
    budget.chars -= typeof value === "string" ? value.length + 2 : String(value).length;
    return value === undefined ? null : value;
  }
  budget.chars -= 2;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) {
      budget.chars--;
      if (budget.chars < 0) break;
      items.push(copyOf(item, undefined, budget));
    }
    return items;
  }
  const members: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    budget.chars -= name.length + 4;
    if (budget.chars < 0) break;
    members.push([name, copyOf(item, name, budget)]);
  }
  return Object.fromEntries(members);
}
