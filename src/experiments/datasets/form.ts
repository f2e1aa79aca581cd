import { MultipartParseError, type MultipartPart, parseMultipart } from "@remix-run/multipart-parser";
import type { z } from "zod";
import { invalidParts } from "../../platform/contract/validation-errors.ts";
import { InvalidRequestError } from "../../platform/errors.ts";
import { cleanText, isObject, JsonError, type JsonObject, parseUntrusted } from "../../platform/lib/json/json.ts";
import { ExampleCreate, ExampleUpdate, MAX_ATTACHMENT_NAME } from "../contract/datasets/examples.ts";
import { uuidOrHex } from "../contract/fields.ts";
import type { NewAttachment } from "./example-attachments.ts";
import type { ExampleChange, NewExample } from "./store-examples.ts";

/**
 * An unparsed body, whose bytes can be transferred to a worker thread. Parts from the official Python client have no file name, so
 * `Request.formData()` would read attachments as text.
 */
export type FormBody = [content_type: string, bytes: Uint8Array];

const MAX_PARTS = 100_000;

/** @throws InvalidRequestError when the body is not valid multipart/form-data */
export function readForm([content_type, bytes]: FormBody): MultipartPart[] {
  const boundary = /^multipart\/form-data\b.*;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(content_type);
  if (!boundary) throw invalidForm([], "The body must be multipart/form-data");
  const limits = { maxFileSize: bytes.byteLength, maxParts: MAX_PARTS, maxTotalSize: bytes.byteLength };
  try {
    return [...parseMultipart(bytes, { boundary: (boundary[1] ?? boundary[2]) as string, ...limits })];
  } catch (error) {
    if (!(error instanceof MultipartParseError)) throw error;
    throw invalidForm([], `The multipart body could not be read: ${error.message}`);
  }
}

/** @throws InvalidRequestError when the part is not JSON */
function jsonOfPart(part: MultipartPart): unknown {
  try {
    return parseUntrusted(part.text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidForm([part.name ?? ""], `The part ${error.message}`);
  }
}

export const invalidForm = (loc: string[], msg: string): InvalidRequestError =>
  new InvalidRequestError([{ loc: ["body", ...loc], msg, type: "value_error" }]);

/** The parts of an example in a multipart body. */
interface ExampleParts {
  id: string;
  body: JsonObject;
  attachments: NewAttachment[];
}

const JSON_FIELDS = ["inputs", "outputs", "attachments_operations"];

const UNKNOWN_PART =
  "The part name must be {id}, {id}.inputs, {id}.outputs, {id}.attachments_operations or {id}.attachment.{name} with a name of at most " +
  `${MAX_ATTACHMENT_NAME} characters`;

/** @throws InvalidRequestError when the body is not multipart/form-data, a part name is unknown, or a JSON part is invalid */
export function readExampleForm(form: FormBody): ExampleParts[] {
  const examples = new Map<string, ExampleParts>();
  for (const part of readForm(form)) {
    const name = cleanText(part.name ?? "");
    const [given = "", field, ...more] = name.split(".");
    const id = uuidOrHex.safeParse(given);
    if (!id.success) throw invalidForm([name], "The part name must begin with the example ID, which is a UUID");
    const example = examples.get(id.data) ?? { id: id.data, body: {}, attachments: [] };
    examples.set(id.data, example);
    const attachment = more.join(".");
    if (field === undefined) example.body = { ...objectOf(part.name, jsonOfPart(part)), ...example.body };
    else if (JSON_FIELDS.includes(field) && more.length === 0) example.body[field] = jsonOfPart(part);
    else if (field === "attachment" && attachment !== "" && attachment.length <= MAX_ATTACHMENT_NAME) {
      const mime_type = (part.headers["content-type"] ?? "application/octet-stream")
        .replace(/;\s*length=\d+/, "")
        .trim();
      // `slice` copies the bytes, because a view would keep the whole body in memory.
      example.attachments.push({
        name: attachment,
        mime_type: cleanText(mime_type).slice(0, 200),
        data: part.bytes.slice(),
      });
    } else throw invalidForm([name], UNKNOWN_PART);
  }
  return [...examples.values()];
}

function objectOf(name: string | undefined, value: unknown): JsonObject {
  if (isObject(value)) return value;
  throw invalidForm([name ?? ""], "The part must contain a JSON object");
}

/** @throws InvalidRequestError with the reasons of all invalid examples */
export const toNewExamples = (parts: ExampleParts[]): NewExample[] =>
  checkAll(ExampleCreate, parts, (example, attachments) => ({ ...example, attachments }));

/** @throws InvalidRequestError with the reasons of all invalid examples */
export const toExampleChanges = (parts: ExampleParts[]): ExampleChange[] =>
  checkAll(ExampleUpdate, parts, (change, attachments, id) => ({ ...change, id, attachments }));

function checkAll<T, R>(
  schema: z.ZodType<T>,
  parts: ExampleParts[],
  toResult: (checked: T, attachments: NewAttachment[], id: string) => R,
): R[] {
  const reasons: InvalidRequestError["parts"] = [];
  const results = parts.flatMap(({ id, body, attachments }) => {
    const names = attachments.map(({ name }) => name);
    const duplicate = names.find((name, index) => names.indexOf(name) < index);
    if (duplicate !== undefined)
      throw invalidForm([`${id}.attachment.${duplicate}`], "The request contains this part more than once");
    const result = schema.safeParse({ ...body, id }, { reportInput: true });
    if (!result.success) reasons.push(...invalidParts(result.error.issues, body, ["body", id]));
    return result.success ? [toResult(result.data, attachments, id)] : [];
  });
  if (reasons.length > 0) throw new InvalidRequestError(reasons);
  return results;
}
