import {
  type ColumnNode,
  type ColumnUpdateNode,
  type CompiledQuery,
  type InsertQueryNode,
  type KyselyPlugin,
  type OperationNode,
  OperationNodeTransformer,
  type ReferenceNode,
  type UpdateQueryNode,
  type ValueNode,
  type ValuesNode,
} from "kysely";
import type { ApiError } from "../errors.ts";
import type { Query, Schema, StatementCache, Tx } from "./database.ts";
import { WrappedParameter } from "./prepared.ts";

/** How a column is encrypted: as a JSON object whose keys stay readable, or as a whole. */
export type EncryptedFormat = "json" | "blob";

/** The encrypted columns by table, with the name of the model in encryption contexts. */
export type EncryptedTables = Partial<
  Record<keyof Schema, { model: string; columns: Readonly<Record<string, EncryptedFormat>> }>
>;

export interface PlainValue {
  model: string;
  field: string;
  format: EncryptedFormat;
  text: string;
}

/** Its text contains the model and the field for which it was encrypted. */
export type SealedValue = Pick<PlainValue, "field" | "text">;

/** A decrypted value with the encryption context that was stored with it, as JSON, or the reason why it cannot be decrypted. */
export type OpenedValue = { text: string; context: string } | { error: ApiError };

/** The values that a query or a transaction can use. */
export interface Values {
  encrypted(value: PlainValue): string;
  /** Makes the results of `encrypted` known, if they have to be known before the next query. */
  prepare(values: readonly PlainValue[]): Promise<void>;
  opened(values: readonly SealedValue[]): Promise<OpenedValue[]>;
  newId(): string;
  /** Whether a value that cannot be decrypted throws when it is used, and not when its row is read: a row can be locked without it. */
  readonly isLazy: boolean;
}

/** Texts that contain no data. */
const EMPTY = new Set(["", "{}", "[]", "null", '""']);
const isEncrypted = (value: unknown): value is string =>
  typeof value === "string" && (value.charCodeAt(0) === 9 || value.charCodeAt(0) === 1);

/** Replaces the encrypted values of rows. */
export class Decryption {
  /** Names of the encrypted columns of all tables. */
  readonly #fields: ReadonlySet<string>;

  constructor(tables: EncryptedTables) {
    this.#fields = new Set([...Object.values(tables).flatMap(({ columns }) => Object.keys(columns)), ...ALIASES]);
  }

  async open(rows: readonly object[], values: Values): Promise<void> {
    const found: { row: Record<string, unknown>; field: string; text: string }[] = [];
    for (const row of rows as Record<string, unknown>[])
      for (const field in row) {
        const text = row[field];
        if (isEncrypted(text) && this.#fields.has(field)) found.push({ row, field, text });
      }
    if (found.length === 0) return;
    const opened = await values.opened(found.map(({ field, text }) => ({ field, text })));
    for (const [n, { row, field }] of found.entries()) {
      const each = opened[n] as OpenedValue;
      if (!("error" in each)) row[field] = each.text;
      else if (!values.isLazy) throw each.error;
      else Object.defineProperty(row, field, { get: () => fail(each.error) });
    }
  }
}

/** Names under which queries return encrypted columns. */
const ALIASES: readonly string[] = ["failure"];

function fail(error: ApiError): never {
  throw error;
}

interface Sealing {
  plugin: KyselyPlugin;
  statements: StatementCache;
  decryption: Decryption;
}

export class EncryptedTx implements Tx {
  readonly k: Tx["k"];
  readonly statements: StatementCache;
  readonly dialect: Tx["dialect"];
  readonly #inner: Tx;
  readonly #decryption: Decryption;
  readonly #values: Values;

  constructor(inner: Tx, { plugin, statements, decryption }: Sealing, values: Values) {
    this.#inner = inner;
    this.#decryption = decryption;
    this.#values = values;
    this.k = inner.k.withPlugin(plugin);
    this.statements = statements;
    this.dialect = inner.dialect;
  }

  async all<R>(query: Query<R>): Promise<R[]> {
    const rows = await this.#inner.all(await this.#compiled(query));
    await this.#decryption.open(rows as object[], this.#values);
    return rows;
  }

  async first<R>(query: Query<R>): Promise<R | undefined> {
    const row = await this.#inner.first(await this.#compiled(query));
    if (row) await this.#decryption.open([row], this.#values);
    return row;
  }

  async run(query: Query<unknown>): Promise<number> {
    return this.#inner.run(await this.#compiled(query));
  }

  async enqueue(query: Query<unknown>): Promise<void> {
    return this.#inner.enqueue(await this.#compiled(query));
  }

  newId(): string {
    return this.#values.newId();
  }

  async #compiled<R>(query: Query<R>): Promise<CompiledQuery<R>> {
    const compiled = "compile" in query ? query.compile() : query;
    const plain = compiled.parameters.flatMap((each) => (each instanceof EncryptedParameter ? each.plain : []));
    if (plain.length > 0) await this.#values.prepare(plain);
    const parameters = compiled.parameters.map((each) =>
      each instanceof EncryptedParameter ? each.resolve(this.#values) : each,
    );
    return { ...compiled, parameters };
  }
}

type Column = Pick<PlainValue, "model" | "field" | "format">;

/** A parameter for an encrypted column. */
class EncryptedParameter extends WrappedParameter {
  readonly #column: Column;

  constructor(value: unknown, column: Column) {
    super(value);
    this.#column = column;
  }

  override around(value: unknown): EncryptedParameter {
    return new EncryptedParameter(value, this.#column);
  }

  get plain(): PlainValue[] {
    const text = this.value;
    return typeof text !== "string" || EMPTY.has(text) ? [] : [{ ...this.#column, text }];
  }

  resolve(values: Values): unknown {
    const [plain] = this.plain;
    return plain ? values.encrypted(plain) : this.value;
  }
}

/**
 * Wraps the parameters for encrypted columns of inserts and updates while they are compiled. Refuses to set such a column to an expression,
 * other than another column: its value would not be encrypted.
 */
export class EncryptedColumns extends OperationNodeTransformer implements KyselyPlugin {
  readonly #tables: EncryptedTables;

  constructor(tables: EncryptedTables) {
    super();
    this.#tables = tables;
  }

  transformQuery: KyselyPlugin["transformQuery"] = ({ node }) => this.transformNode(node);

  transformResult: KyselyPlugin["transformResult"] = async ({ result }) => result;

  protected override transformInsertQuery(node: InsertQueryNode): InsertQueryNode {
    const table = node.into?.table.identifier.name;
    const columns = node.columns?.map(({ column }) => this.#columnOf(table, column.name)) ?? [];
    const { onConflict } = node;
    const updates = onConflict?.updates?.map((update) => this.#wrapUpdate(table, update));
    return {
      ...node,
      ...(onConflict && updates && { onConflict: { ...onConflict, updates } }),
      ...(node.values && columns.some((column) => column) && { values: wrapRows(node.values, columns) }),
    };
  }

  protected override transformUpdateQuery(node: UpdateQueryNode): UpdateQueryNode {
    const target = node.table as unknown as { table?: { identifier: { name: string } } } | undefined;
    const table = target?.table?.identifier.name;
    const updates = node.updates?.map((update) => this.#wrapUpdate(table, update));
    return updates ? { ...node, updates } : node;
  }

  #wrapUpdate(table: string | undefined, update: ColumnUpdateNode): ColumnUpdateNode {
    const named = update.column as ColumnNode | ReferenceNode;
    const { name } = (named.kind === "ReferenceNode" ? (named.column as ColumnNode) : named).column;
    const column = this.#columnOf(table, name);
    return column ? { ...update, value: wrapNode(update.value, column) } : update;
  }

  #columnOf(table: string | undefined, name: string): Column | undefined {
    const entry = this.#tables[table as keyof Schema];
    const format = entry?.columns[name];
    return entry && format && { model: entry.model, field: name, format };
  }
}

/** Rows that are selected from a table are copied as they are stored. */
function wrapRows(values: OperationNode, columns: readonly (Column | undefined)[]): OperationNode {
  if (values.kind !== "ValuesNode") return values;
  const rows = (values as ValuesNode).values.map((row) => ({
    ...row,
    values: row.values.map((value, n) => {
      const column = columns[n];
      if (!column) return value;
      return row.kind === "PrimitiveValueListNode"
        ? new EncryptedParameter(value, column)
        : wrapNode(value as OperationNode, column);
    }),
  }));
  return { ...values, values: rows } as OperationNode;
}

function wrapNode(node: OperationNode, column: Column): OperationNode {
  if (node.kind === "ReferenceNode" || node.kind === "DefaultInsertValueNode") return node;
  if (node.kind !== "ValueNode")
    throw new Error(
      `${column.model}.${column.field} is encrypted and can be set only to a value, not to an SQL expression.`,
    );
  return { ...node, value: new EncryptedParameter((node as ValueNode).value, column) } as OperationNode;
}
