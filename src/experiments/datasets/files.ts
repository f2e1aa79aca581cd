import { CsvError, parse } from "csv-parse/sync";
import { z } from "zod";
import type { Caller } from "../../platform/contract/caller.ts";
import { invalidParts } from "../../platform/contract/validation-errors.ts";
import { type Database, writeUnique } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { cleanText, isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import type { Dataset } from "../contract/datasets/datasets.ts";
import type { Example } from "../contract/datasets/examples.ts";
import { type AsOf, indexedName, uuidOrHex } from "../contract/fields.ts";
import { getDataset } from "../lookups.ts";
import { cellText, csvLines } from "../serialization/csv.ts";
import { toDataset, toExample } from "../serialization/records.ts";
import { newestVersionTime } from "../storage/dataset-versions.ts";
import { findDataset } from "../storage/datasets.ts";
import { type ExampleFilter, listExamples } from "../storage/examples.ts";
import { addDataset } from "./datasets.ts";
import { type FormBody, invalidForm, readForm } from "./form.ts";
import { addExamples, type NewExample } from "./store-examples.ts";
import { findVersionTime } from "./versions.ts";

export type DatasetFileFormat = "csv" | "jsonl" | "openai" | "openai_ft";

const PAGE_SIZE = 500;

/** A column of a CSV file, such as `inputs.question`. */
type Column = readonly [field: "inputs" | "outputs" | "metadata", key: string];

/** Describes a download. It stays the same while the download is read page by page. */
export interface DatasetFile {
  format: DatasetFileFormat;
  filter: ExampleFilter;
  columns: Column[];
}

export const datasetFileOperations = (database: Database) => ({
  /** Creates a dataset from a form with a CSV file. All cells are stored as strings. */
  async uploadCsv(caller: Caller, ...form: FormBody): Promise<Dataset> {
    const { dataset, examples } = readCsvForm(form);
    return writeUnique(database, async (tx) => {
      await addExamples(tx, caller, await addDataset(tx, caller, dataset), examples);
      const stored = await findDataset(tx, caller.tenant_id, dataset.id);
      if (!stored) throw new ApiError("dataset_not_found");
      return toDataset(stored);
    });
  },

  /** Runs before any data is sent. @throws ApiError, or InvalidRequestError when an example has no chat messages for an OpenAI format */
  async openDownload(caller: Caller, dataset_id: string, format: DatasetFileFormat, as_of: AsOf): Promise<DatasetFile> {
    const { read } = database;
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    // The default is the time of the newest version, which may be later than now: versions of the same millisecond get later times.
    const at = (await findVersionTime(read, dataset_no, as_of)) ?? (await newestVersionTime(read, dataset_no)) ?? 0;
    const file: DatasetFile = { format, filter: { dataset_no, as_of: at }, columns: [] };
    const columns = new Map<string, Column>();
    if (format === "jsonl") return file;
    for (let after: number | null = START; after !== null; ) {
      const { examples, next } = await readPage(database, caller, file, after);
      if (format !== "csv") for (const example of examples) lineOf(format, example);
      else for (const column of examples.flatMap(columnsOf)) columns.set(column.join("."), column);
      after = next;
    }
    return { ...file, columns: [...columns.values()].sort(byField) };
  },

  /** Returns the text of a page, and the `after` value of the next page: null after the last page. For the first page, `after` is -1. */
  async readDownload(caller: Caller, file: DatasetFile, after: number): Promise<{ text: string; next: number | null }> {
    const { format, columns } = file;
    const { examples, next } = await readPage(database, caller, file, after);
    if (format !== "csv") return { text: examples.map((example) => `${lineOf(format, example)}\n`).join(""), next };
    const header = after === START ? [["id", ...columns.map((column) => column.join("."))]] : [];
    const lines = examples.map((example) => [
      example.id,
      ...columns.map(([field, key]) => cellText((example[field] as JsonObject | null)?.[key])),
    ]);
    return { text: csvLines([...header, ...lines]), next };
  },
});

const START = -1;

async function readPage({ read }: Database, { tenant_id }: Caller, { filter }: DatasetFile, after_index: number) {
  const page = { order: "index" as const, descending: false, seed: 0, limit: PAGE_SIZE, offset: 0 };
  const rows = await listExamples(read, tenant_id, { ...filter, after_index }, page);
  const next = rows.length < PAGE_SIZE ? null : (rows.at(-1)?.example_index ?? null);
  return { examples: rows.map((row) => toExample(row, "")), next };
}

type DownloadedExample = Awaited<ReturnType<typeof readPage>>["examples"][number];

const FIELDS = ["inputs", "outputs", "metadata"] as const;

const columnsOf = (example: DownloadedExample): Column[] =>
  FIELDS.flatMap((field) => Object.keys(example[field] ?? {}).map((key) => [field, key] as const));

/** Sorts columns by field. The sort is stable: the keys of a field keep the order of their first appearance. */
const byField = ([a]: Column, [b]: Column): number => FIELDS.indexOf(a) - FIELDS.indexOf(b);

function lineOf(format: Exclude<DatasetFileFormat, "csv">, example: DownloadedExample): string {
  if (format === "openai") return JSON.stringify(toEvalLine(example));
  if (format === "openai_ft") return JSON.stringify(toFineTuningLine(example));
  const { id, inputs, outputs, metadata, source_run_id, created_at, modified_at } = example;
  return JSON.stringify({ id, inputs, outputs, metadata, source_run_id, created_at, modified_at });
}

const FormFields = z.object({
  id: uuidOrHex.optional(),
  name: indexedName,
  description: z.string().optional(),
  data_type: z.enum(["kv", "llm", "chat"]).default("kv"),
  input_keys: z.array(z.string()).min(1),
  output_keys: z.array(z.string()).default([]),
  metadata_keys: z.array(z.string()).default([]),
});

const LISTS = ["input_keys", "output_keys", "metadata_keys"];

function readCsvForm(form: FormBody) {
  const parts = readForm(form);
  const file = parts.find(({ name }) => name === "file");
  if (!file) throw invalidForm(["file"], "Field required");
  const given: Record<string, unknown> = { name: file.filename && cleanText(file.filename) };
  for (const { name = "", text: raw } of parts.filter((part) => part !== file)) {
    const text = cleanText(raw);
    given[name] = LISTS.includes(name) ? [...((given[name] as string[] | undefined) ?? []), text] : text;
  }
  const fields = FormFields.safeParse(given, { reportInput: true });
  if (!fields.success) throw new InvalidRequestError(invalidParts(fields.error.issues, given, ["body"]));
  const { input_keys, output_keys, metadata_keys, id = crypto.randomUUID(), ...dataset } = fields.data;
  const pick = (row: Record<string, string>, keys: string[]) =>
    Object.fromEntries(keys.map((key) => [key, row[key] as string]));
  const examples = parseCsv(cleanText(file.text), [...input_keys, ...output_keys, ...metadata_keys]).map(
    (row): NewExample => ({
      inputs: pick(row, input_keys),
      outputs: output_keys.length === 0 ? undefined : pick(row, output_keys),
      metadata: metadata_keys.length === 0 ? undefined : pick(row, metadata_keys),
      use_source_run_io: false,
      use_source_run_attachments: [],
    }),
  );
  return { dataset: { ...dataset, id }, examples };
}

function parseCsv(text: string, keys: string[]): Record<string, string>[] {
  let names: string[] = [];
  const columns = (header: string[]) => {
    names = header;
    return header;
  };
  try {
    const rows: Record<string, string>[] = parse(text, { bom: true, columns, skip_empty_lines: true });
    const unknown = keys.find((key) => !names.includes(key));
    if (unknown === undefined) return rows;
    const known = names.map((name) => `"${name}"`).join(", ");
    throw invalidForm(["file"], `Value error, the file has no column "${unknown}"; it has ${known || "no header"}`);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw invalidForm(["file"], `Value error, the file is not valid CSV: ${error.message}`);
  }
}

/** OpenAI roles, keyed by LangChain message type. */
const ROLES: Record<string, string> = { human: "user", ai: "assistant", AIMessageChunk: "assistant" };

/** Keys under which clients and traces store messages, in order of precedence. */
const KEYS = ["messages", "input", "inputs", "output", "message", "generations", "answer", "question"];

/** Returns a line of an OpenAI fine-tuning file: the whole chat. @throws InvalidRequestError when the example is not a chat */
const toFineTuningLine = (example: Example): JsonObject => ({
  messages: [...messagesOf(example, "inputs", "user"), ...messagesOf(example, "outputs", "assistant")],
});

/** Returns a line of an OpenAI evals file: the chat and the ideal answer. @throws InvalidRequestError when the example is not a chat */
function toEvalLine(example: Example): JsonObject {
  const [answer] = messagesOf(example, "outputs", "assistant");
  return { input: messagesOf(example, "inputs", "user"), ideal: answer?.content ?? null };
}

function messagesOf(example: Example, field: "inputs" | "outputs", role: string): JsonObject[] {
  const values = example[field] ?? {};
  const key = KEYS.find((name) => Object.hasOwn(values, name)) ?? onlyKey(values);
  const given = key === undefined ? undefined : values[key];
  const messages = [given].flat(2).map((item) => toMessage(item, role));
  if (key !== undefined && messages.length > 0 && messages.every((message) => message !== undefined)) return messages;
  const msg = `Value error, the example ${example.name} (${example.id}) has no chat messages in its ${field}`;
  throw new InvalidRequestError([{ loc: ["path", "dataset_id"], msg, type: "value_error" }]);
}

function onlyKey(values: JsonObject): string | undefined {
  const keys = Object.keys(values);
  return keys.length === 1 ? keys[0] : undefined;
}

/** Converts a string, an OpenAI message, or a LangChain message in any of its forms to an OpenAI message. */
function toMessage(item: unknown, role: string): JsonObject | undefined {
  if (typeof item === "string") return { role, content: item };
  if (!isObject(item)) return undefined;
  if (typeof item.role === "string") return item;
  if (isObject(item.message)) return toMessage(item.message, role);
  // A LangChain message is `{type, data}` in examples, `{lc, id, kwargs}` when serialized, or `{type, content}`.
  const fields = [item.data, item.kwargs].find(isObject) ?? item;
  const type = typeof item.type === "string" && item.type !== "constructor" ? item.type : fields.type;
  const name =
    typeof type === "string"
      ? type
      : lastOf(item.id)
          .replace(/Message(Chunk)?$/, "")
          .toLowerCase();
  if (name === "" || !("content" in fields)) return undefined;
  const { content, additional_kwargs, tool_calls, tool_call_id } = fields;
  const kwargs = isObject(additional_kwargs) ? additional_kwargs : {};
  const calls = kwargs.tool_calls ?? openaiCalls(tool_calls);
  return {
    role: ROLES[name] ?? name,
    content,
    ...(calls !== undefined && { tool_calls: calls }),
    ...(kwargs.function_call !== undefined && { function_call: kwargs.function_call }),
    ...(tool_call_id !== undefined && { tool_call_id }),
  };
}

const lastOf = (id: unknown): string => (Array.isArray(id) ? String(id.at(-1)) : "");

/** Converts LangChain tool calls, whose arguments are objects, to OpenAI tool calls, whose arguments are JSON text. */
function openaiCalls(calls: unknown): JsonObject[] | undefined {
  if (!Array.isArray(calls) || calls.length === 0) return undefined;
  return calls.filter(isObject).map(({ id, name, args }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args ?? {}) },
  }));
}
