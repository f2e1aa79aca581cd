import type { BaseStore, Operation, OperationResults } from "@langchain/langgraph-checkpoint";
import { parseUntrusted } from "../../../platform/lib/json/json.ts";
import type { StoreItem, StoreOperation } from "../host-store.ts";
import type { Library } from "./loading/library.ts";

export type RequestStore = (operations: StoreOperation[]) => Promise<unknown[]>;

/** Creates a LangGraph store that calls the service's store. One instance serves all graphs and runs of a host that share a library. */
export function createStore({ checkpoint }: Library, request: RequestStore): BaseStore {
  callDirectly(checkpoint);
  return new (class HostStore extends checkpoint.BaseStore {
    override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
      const results = await request(operations.map(toRequest));
      return results.map((result, n) => fromResult(operations[n] as Operation, result)) as OperationResults<Op>;
    }
  })();
}

/**
 * LangGraph wraps the store of each run in a queue that a timer polls every millisecond until the run ends, that drops `index`, and that
 * has no `listNamespaces`. Messages to the service are batched anyway, so the wrapper is patched to call the store.
 */
function callDirectly({ AsyncBatchedStore, BaseStore }: Library["checkpoint"]): void {
  const { get, search, put, delete: remove, listNamespaces } = BaseStore.prototype;
  Object.assign(AsyncBatchedStore.prototype, {
    ...{ get, search, put, delete: remove, listNamespaces },
    batch(this: { store: BaseStore }, operations: Operation[]) {
      return this.store.batch(operations);
    },
    processBatchQueue: async () => undefined,
  });
}

function toRequest(operation: Operation): StoreOperation {
  if ("namespacePrefix" in operation) {
    const { namespacePrefix: namespace_prefix, filter, query, limit, offset } = operation;
    return { kind: "search", namespace_prefix, filter: plain(filter), query, limit, offset };
  }
  if ("value" in operation) {
    const { namespace, key, value, index } = operation;
    if (value === null) return { kind: "delete", namespace, key };
    // The host's thread does this work, not the serving thread.
    return { kind: "put", namespace, key, value: JSON.stringify(plain(value)), index };
  }
  if ("key" in operation) return { kind: "get", namespace: operation.namespace, key: operation.key };
  const { matchConditions = [], maxDepth: max_depth, limit, offset } = operation;
  const pathOf = (type: string) => matchConditions.find(({ matchType }) => matchType === type)?.path;
  return { kind: "namespaces", prefix: pathOf("prefix"), suffix: pathOf("suffix"), max_depth, limit, offset };
}

/** Returns the value as a request would store it: after JSON, with U+FFFD for NUL and unpaired surrogates. Throws above the limits of requests. */
const plain = <T>(value: T): T => (value === undefined ? value : (parseUntrusted(JSON.stringify(value)) as T));

function fromResult(operation: Operation, result: unknown) {
  if ("namespacePrefix" in operation) return (result as StoreItem[]).map(toItem);
  return "key" in operation && !("value" in operation) ? result && toItem(result as StoreItem) : result;
}

const toItem = ({ created_at, updated_at, ...item }: StoreItem) => ({
  ...item,
  createdAt: new Date(created_at),
  updatedAt: new Date(updated_at),
});
