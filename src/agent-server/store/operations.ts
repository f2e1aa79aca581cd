import { exactIssues } from "../../platform/contract/validation-errors.ts";
import { ApiError } from "../../platform/errors.ts";
import {
  type ItemKey,
  type ItemPut,
  type ItemSearch,
  itemKey,
  itemPut,
  itemSearch,
  type NamespaceList,
  namespaceList,
} from "../contract/store.ts";
import type { StoreOperation } from "../graph-hosts/host-store.ts";

const SCHEMAS = { put: itemPut, delete: itemKey, get: itemKey, search: itemSearch, namespaces: namespaceList };

export type CheckedOperation =
  | { kind: "put"; body: ItemPut }
  | { kind: "delete"; body: ItemKey }
  | { kind: "get"; body: ItemKey }
  | { kind: "search"; body: ItemSearch }
  | { kind: "namespaces"; body: NamespaceList };

/**
 * Validates an operation of a graph like the body of the corresponding request.
 *
 * @throws ApiError invalid_request
 */
export function checkStoreOperation({ kind, ...given }: StoreOperation): CheckedOperation {
  const body = "value" in given ? { ...given, value: JSON.parse(given.value) } : given;
  const result = SCHEMAS[kind].safeParse(body, { reportInput: true });
  if (result.success) return { kind, body: result.data } as CheckedOperation;
  const reasons = exactIssues(result.error.issues).map(({ issue, path }) => `${path.join(".")}: ${issue.message}`);
  throw new ApiError("invalid_request", { reason: `store.${kind}: ${reasons.slice(0, 3).join("; ")}` });
}
