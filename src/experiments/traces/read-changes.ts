import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { MultipartParseError, parseMultipart } from "@remix-run/multipart-parser";
import type { z } from "zod";
import { normalizeUuid } from "../../platform/contract/pydantic-messages.ts";
import { invalidParts } from "../../platform/contract/validation-errors.ts";
import { ApiError, type InvalidPart } from "../../platform/errors.ts";
import {
  cleanText,
  isObject,
  JsonError,
  type JsonObject,
  MAX_DEPTH,
  parseUntrusted,
} from "../../platform/lib/json/json.ts";
import { MAX_ATTACHMENT_NAME } from "../contract/datasets/examples.ts";
import { FeedbackCreate } from "../contract/feedback/feedback.ts";
import { uuidOrHex } from "../contract/fields.ts";
import { RunCreate, RunUpdate } from "../contract/traces/traces.ts";
import type { TraceChanges } from "./operation.ts";
import { MAX_FIELD_BYTES, removeTooLarge, tooLarge } from "./size-limits.ts";

/** An ingestion request without its body. */
export interface IngestRequest {
  kind: "create" | "update" | "batch" | "multipart";
  /** The run id in the path of an update. */
  run_id?: string | undefined;
  content_type: string;
  content_encoding: string;
  /** Whether the runs are those of an agent of this service. */
  is_of_agent?: boolean;
}

/** The maximum number of reasons in a response. */
export const MAX_REPORTED = 100;

/** The valid changes of a request, and the first reasons for the refused parts. */
export interface ReadChanges extends TraceChanges {
  refused: InvalidPart[];
}

const MAX_PARTS = 100_000;

/** A batch is parsed in a worker thread, so it may be larger than the documents that the serving thread parses. */
const BATCH_LIMITS = { depth: 1_000, keys: 5_000_000, values: 20_000_000 };

const UNKNOWN_PART =
  "unknown part name. The parts of a run are named post.<run_id> or patch.<run_id>, optionally followed by .inputs, .outputs, .events, .extra, .error or " +
  ".serialized. Other parts are named feedback.<id> or attachment.<run_id>.<name>, with a name of at most " +
  `${MAX_ATTACHMENT_NAME} characters and no dots`;

const RUN_PARTS = new Set(["inputs", "outputs", "events", "extra", "error", "serialized"]);
const PAYLOADS = ["inputs", "outputs", "events", "extra", "serialized"] as const;

/**
 * Reads the body of an ingestion request.
 *
 * @param bytes the unpacked body
 * @throws ApiError when the body exceeds its limit, or is not a valid JSON object or multipart body
 */
export function readChanges(request: IngestRequest, bytes: Uint8Array, max_bytes: number): ReadChanges {
  const changes = new ChangeReader();
  changes.read(request, bytes, max_bytes);
  // Smaller bodies have no field that is too large.
  if (bytes.byteLength > MAX_FIELD_BYTES) changes.report(removeTooLarge(changes));
  // A request for one run stores either the whole run or nothing.
  const isOfOneRun = request.kind === "create" || request.kind === "update";
  if (isOfOneRun && changes.refused.length > 0) changes.operations.length = 0;
  return changes;
}

/** @throws ApiError when `content_encoding` is unknown or wrong, or the body exceeds `max_bytes` after decompression */
export function decompressed(body: Uint8Array, content_encoding: string, max_bytes: number): Uint8Array {
  try {
    switch (content_encoding) {
      case "":
      case "identity":
        return body;
      case "gzip":
        return gunzipSync(body, { maxOutputLength: max_bytes });
      case "zstd":
        return zstdDecompressSync(body, { maxOutputLength: max_bytes });
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
      throw new ApiError("body_too_large", { limit_bytes: max_bytes });
    throw new ApiError("bad_trace_body", { reason: `The body is not valid ${content_encoding}.` });
  }
  throw new ApiError("unsupported_encoding", { encoding: content_encoding });
}

const textOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString();

function parseBody(bytes: Uint8Array): JsonObject {
  try {
    const body = parsePythonJson(textOf(bytes), BATCH_LIMITS);
    if (isObject(body)) return body;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ApiError("bad_trace_body", { reason: `The body ${error.message}.` });
  }
  throw new ApiError("bad_trace_body", { reason: "The body must be a JSON object." });
}

/** The parts of one run in a multipart body. */
interface RunParts {
  kind: "post" | "patch";
  main: JsonObject | undefined;
  fields: JsonObject;
}

class ChangeReader implements ReadChanges {
  readonly operations: TraceChanges["operations"] = [];
  attachments: TraceChanges["attachments"] = [];
  readonly feedback: TraceChanges["feedback"] = [];
  readonly refused: InvalidPart[] = [];

  /** @throws ApiError when the body cannot be read */
  read({ kind, run_id, content_type }: IngestRequest, bytes: Uint8Array, max_bytes: number): void {
    if (kind === "multipart") {
      this.#readMultipart(bytes, content_type, max_bytes);
      return;
    }
    const body = parseBody(bytes);
    if (kind === "batch") this.#readBatch(body);
    else if (kind === "update") this.#add("patch", { ...body, id: run_id }, []);
    else this.#add("post", { ...body, id: body.id ?? crypto.randomUUID() }, []);
  }

  report(parts: InvalidPart[]): void {
    this.refused.push(...parts.slice(0, MAX_REPORTED - this.refused.length));
  }

  #readBatch(body: JsonObject): void {
    for (const kind of ["post", "patch"] as const) {
      const list = body[kind] ?? [];
      if (!Array.isArray(list)) throw new ApiError("bad_trace_body", { reason: `The field ${kind} must be a list.` });
      list.forEach((run, index) => {
        this.#add(kind, isObject(run) ? run : {}, [kind, index]);
      });
    }
  }

  /** Part names: `post.{id}`, `post.{id}.{field}` (the same with `patch`), `attachment.{id}.{name}`, `feedback.{id}`. */
  #readMultipart(bytes: Uint8Array, content_type: string, max_bytes: number): void {
    const boundary = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(content_type);
    if (!boundary)
      throw new ApiError("bad_trace_body", { reason: "The multipart content type has no boundary parameter." });
    if (bytes.length === 0) throw new ApiError("bad_trace_body", { reason: "The body is empty." });
    const runs = new Map<string, RunParts>();
    // The parser refuses the whole body, but a part that is too large concerns only its run.
    const limits = { maxFileSize: max_bytes, maxParts: MAX_PARTS, maxTotalSize: max_bytes };
    try {
      for (const part of parseMultipart(bytes, { boundary: (boundary[1] ?? boundary[2]) as string, ...limits })) {
        const [kind, id = "", ...rest] = (part.name ?? "").split(".");
        const field = rest.join(".");
        // A part usually has one chunk of content, which `part.bytes` would copy.
        const [data = new Uint8Array(), ...more] = part.content;
        const content = more.length === 0 ? data : part.bytes;
        const isOfRun = (kind === "post" || kind === "patch") && (field === "" || RUN_PARTS.has(field));
        if (isOfRun) this.#addRunPart(runs, kind, id, field, content);
        else if (kind === "feedback" && field === "") this.#addFeedback(id, content);
        else if (kind === "attachment" && field !== "" && field.length <= MAX_ATTACHMENT_NAME && !field.includes("."))
          this.#addAttachment(id, field, part.headers["content-type"], content);
        else this.#refuse([part.name ?? ""], UNKNOWN_PART, part.name);
      }
    } catch (error) {
      if (!(error instanceof MultipartParseError)) throw error;
      throw new ApiError("bad_trace_body", { reason: `The multipart body could not be read: ${error.message}.` });
    }
    for (const [name, { kind, main, fields }] of runs) {
      const id = name.slice(kind.length + 1);
      if (main) this.#add(kind, { ...main, ...fields, id }, []);
      else this.#refuse([id, Object.keys(fields)[0] ?? ""], `the part ${name} is missing`);
    }
  }

  /** Validates an operation, and adds either the operation or the reasons why it is refused. */
  #add(kind: "post" | "patch", run: JsonObject, loc: (string | number)[]): void {
    // Describing what is wrong with 100,000 IDs takes as long as reading their parts.
    const isInvalid = typeof run.id !== "string" || normalizeUuid(run.id) === undefined;
    if (isInvalid && this.refused.length === MAX_REPORTED) return;
    const id = uuidOrHex.safeParse(run.id, { reportInput: true });
    if (!id.success) {
      this.report(invalidParts(id.error.issues, run.id, ["body", ...loc, "id"]));
      return;
    }
    const fields = { ...run };
    for (const name of PAYLOADS) {
      const value = fields[name];
      if (typeof value !== "object" || value === null) continue;
      if (isDeeperThan(value, MAX_DEPTH)) fields[name] = { __unparsed: JSON.stringify(value) };
    }
    const checked = this.#check(kind === "post" ? RunCreate : RunUpdate, fields, [id.data]);
    if (checked) this.operations.push({ kind, id: id.data, fields: checked });
  }

  #addRunPart(runs: Map<string, RunParts>, kind: RunParts["kind"], id: string, field: string, data: Uint8Array): void {
    const name = `${kind}.${id}`;
    const parts = runs.get(name) ?? { kind, main: undefined, fields: {} };
    runs.set(name, parts);
    const isTooLarge = data.byteLength > MAX_FIELD_BYTES;
    if (isTooLarge) this.#refuse([id, field], tooLarge(MAX_FIELD_BYTES));
    const value = isTooLarge ? undefined : this.#parse(textOf(data), [id, field]);
    if (value === undefined) return;
    if (field !== "") parts.fields[field] = value;
    else if (isObject(value)) parts.main = value;
    else this.#refuse([id], "must be a JSON object");
  }

  #addAttachment(run_id: string, name: string, content_type: string | undefined, data: Uint8Array): void {
    const id = uuidOrHex.safeParse(run_id);
    const mime_type = (content_type ?? "application/octet-stream").replace(/;\s*length=\d+/, "").trim();
    if (id.success)
      this.attachments.push({
        run_id: id.data,
        name: cleanText(name),
        mime_type: cleanText(mime_type.slice(0, 200)),
        data,
      });
    else this.#refuse([`attachment.${run_id}.${name}`], "the run ID must be a UUID", run_id);
  }

  #addFeedback(id: string, data: Uint8Array): void {
    const isTooLarge = data.byteLength > MAX_FIELD_BYTES;
    if (isTooLarge) this.#refuse([`feedback.${id}`], tooLarge(MAX_FIELD_BYTES));
    const value = isTooLarge ? undefined : this.#parse(textOf(data), [`feedback.${id}`]);
    if (value === undefined) return;
    const feedback = this.#check(FeedbackCreate, { ...(isObject(value) ? value : {}), id }, [`feedback.${id}`]);
    if (feedback) this.feedback.push(feedback);
  }

  #parse(text: string, loc: string[]): unknown {
    try {
      return parsePythonJson(text, BATCH_LIMITS);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      this.#refuse(loc, error.message);
      return undefined;
    }
  }

  #check<T>(schema: z.ZodType<T>, value: unknown, loc: string[]): T | undefined {
    const result = schema.safeParse(value, { reportInput: true });
    if (!result.success) this.report(invalidParts(result.error.issues, value, ["body", ...loc]));
    return result.data;
  }

  #refuse(loc: string[], reason: string, input?: unknown): void {
    const part = {
      loc: ["body", ...loc.filter((name) => name !== "")],
      msg: `Value error, ${reason}`,
      type: "value_error",
    };
    this.report([input === undefined ? part : { ...part, input }]);
  }
}

/** Iterative, because the value may be nested a thousand levels deep. */
function isDeeperThan(value: object, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === levels) return true;
    level = level
      .flatMap((item) => Object.values(item as object))
      .filter((item) => typeof item === "object" && item !== null);
  }
  return false;
}

type Limits = Parameters<typeof parseUntrusted>[1];

/**
 * Parses JSON from a client. NaN and Infinity become null. Python's `json` writes them, and the Python client uses it for values that its
 * faster encoder refuses, such as large integers and unpaired surrogates.
 */
function parsePythonJson(text: string, limits: Limits): unknown {
  try {
    return parseUntrusted(text, limits);
  } catch (error) {
    if (!(error instanceof JsonError) || !/NaN|Infinity/.test(text)) throw error;
    return parseUntrusted(withNulls(text), limits);
  }
}

function withNulls(text: string): string {
  const token = /"|NaN|-?Infinity/g;
  let result = "";
  let copied = 0;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    if (match[0] === '"') token.lastIndex = endOfString(text, token.lastIndex);
    else {
      result += `${text.slice(copied, match.index)}null`;
      copied = token.lastIndex;
    }
  }
  return result + text.slice(copied);
}

/** @param from the index after the opening quote */
function endOfString(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (char === "\\") i++;
    else if (char === '"') return i + 1;
  }
  return text.length;
}
