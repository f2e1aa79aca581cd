import { exactIssues } from "../../../platform/contract/validation-errors.ts";
import type { Tx } from "../../../platform/database/database.ts";
import { ApiError } from "../../../platform/errors.ts";
import { cleanJsonText, cleanStrings } from "../../../platform/lib/json/json.ts";
import {
  type ItemKey,
  type ItemPut,
  type ItemRead,
  type ItemSearch,
  itemKey,
  itemPut,
  itemRead,
  itemSearch,
  type NamespaceList,
  namespaceList,
} from "../../contract/store.ts";
import type { StoreOperation } from "../../graph-hosts/host-store.ts";
import type { RunRow } from "../../storage/schema.ts";
import type { Store, StoreWrite } from "../../store/store.ts";
import type { Journal } from "./journal.ts";

/** Staged writes are committed early when their total size in characters exceeds this. A write counts as at least {@link MIN_SIZE}. */
const MAX_STAGED = 4_000_000;
const MIN_SIZE = 1_000;

/**
 * The store of a run's graph. The writes of a node are committed with its results, behind the fence of the run: a node that is repeated
 * after a crash, or that a cancel stops, has stored nothing unless its writes were committed early: by a read, a request or their size.
 */
export class RunStore {
  readonly #run: RunRow;
  readonly #store: Store;
  readonly #journal: Journal;
  #staged: StoreWrite[] = [];
  #size = 0;

  constructor(run: RunRow, store: Store, journal: Journal) {
    this.#run = run;
    this.#store = store;
    this.#journal = journal;
  }

  /** Executes operations and returns their results, in the same order. */
  async answer(operations: readonly StoreOperation[]): Promise<unknown[]> {
    const { tenant_id } = this.#run;
    const checked = operations.map(checkStoreOperation);
    const puts = checked.flatMap((operation) => (operation.kind === "put" ? [operation.body] : []));
    const prepared = await this.#store.preparePuts(tenant_id, puts);
    const results: unknown[] = [];
    for (const { kind, body } of checked) {
      if (kind === "put") results.push(await this.#stage(prepared.shift() as StoreWrite));
      else if (kind === "delete") results.push(await this.#stage(this.#store.prepareDelete(tenant_id, body)));
      else {
        await this.flush();
        if (kind === "get") results.push(await this.#store.get(tenant_id, body));
        else if (kind === "search") results.push(await this.#store.search(tenant_id, body));
        else results.push(await this.#store.listNamespaces(tenant_id, body));
      }
    }
    return results;
  }

  /** Commits all writes. */
  async flush(): Promise<void> {
    const write = this.takeStaged();
    if (write) await this.#journal.commit(write);
    else await this.#journal.written();
  }

  /** Removes and returns the staged writes. The caller must commit them. */
  takeStaged(): ((tx: Tx) => Promise<void>) | undefined {
    if (this.#staged.length === 0) return undefined;
    const writes = this.#staged;
    this.#staged = [];
    this.#size = 0;
    return (tx) => this.#store.write(tx, writes);
  }

  async #stage(write: StoreWrite): Promise<void> {
    this.#staged.push(write);
    this.#size += Math.max(MIN_SIZE, write.put?.value.length ?? 0);
    if (this.#size > MAX_STAGED) await this.flush();
  }
}

const SCHEMAS = { put: itemPut, delete: itemKey, get: itemRead, search: itemSearch, namespaces: namespaceList };

type CheckedOperation =
  | { kind: "put"; body: ItemPut }
  | { kind: "delete"; body: ItemKey }
  | { kind: "get"; body: ItemRead }
  | { kind: "search"; body: ItemSearch }
  | { kind: "namespaces"; body: NamespaceList };

/**
 * Validates an operation of a graph like the body of the corresponding request.
 *
 * @throws ApiError invalid_request
 */
function checkStoreOperation({ kind, ...given }: StoreOperation): CheckedOperation {
  const clean = cleanStrings(given) as typeof given;
  const body = "value" in clean ? { ...clean, value: JSON.parse(cleanJsonText(clean.value)) } : clean;
  const result = SCHEMAS[kind].safeParse(body, { reportInput: true });
  if (result.success) return { kind, body: result.data } as CheckedOperation;
  const reasons = exactIssues(result.error.issues).map(({ issue, path }) => `${path.join(".")}: ${issue.message}`);
  throw new ApiError("invalid_request", { reason: `store.${kind}: ${reasons.slice(0, 3).join("; ")}` });
}
