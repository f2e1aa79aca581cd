import { MultipartParseError, type MultipartPart, parseMultipart } from "@remix-run/multipart-parser";
import { InvalidRequestError } from "../../platform/errors.ts";
import { JsonError, parseUntrusted } from "../../platform/lib/json/json.ts";

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
export function jsonOfPart(part: MultipartPart): unknown {
  try {
    return parseUntrusted(part.text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidForm([part.name ?? ""], `The part ${error.message}`);
  }
}

export const invalidForm = (loc: string[], msg: string): InvalidRequestError =>
  new InvalidRequestError([{ loc: ["body", ...loc], msg, type: "value_error" }]);
