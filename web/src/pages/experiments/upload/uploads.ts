import type { QueryClient } from "@tanstack/react-query";
import type { UploadResult } from "../../../../../src/experiments/contract/upload.ts";
import { credentials } from "../../../api/credentials.ts";
import { API_URL, sendFile } from "../../../api/request.ts";
import { createStore } from "../../../store.ts";
import { shellQuote } from "../../../ui/format.ts";
import { toast } from "../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../queries.ts";
import { isResultFile, MAX_FILE_BYTES, type ResultFile, readResultFile } from "./result-file.ts";

/** A file upload. The server stores the file completely or not at all. */
export interface FileUpload {
  id: number;
  file: File;
  /** The body of the upload: the file, or what it was converted to. */
  body: Blob;
  /** Workspace of the upload. Files that wait stay in it when another workspace is selected. */
  tenant_id: string | null;
  sent_bytes: number;
  /**
   * Files are uploaded in order, one at a time. Columns of CSV and JSONL files are mapped first (`reading`, `mapping`). Such files are
   * `unsupported` if they are too large for the browser.
   */
  state: "reading" | "mapping" | "waiting" | "sending" | "done" | "failed" | "unsupported";
  /** Default dataset of a CSV or JSONL file. */
  dataset_name?: string;
  /** Rows of a CSV or JSONL file. */
  content?: ResultFile;
  /** Lines of the rows in a CSV or JSONL file. */
  lines?: readonly number[];
  result?: UploadResult;
  error?: Error;
}

// Module state, so that uploads continue when the user leaves the page.
const uploads = createStore<readonly FileUpload[]>([]);
let next = 0;
let sending: AbortController | undefined;

export const useUploadList = uploads.use;

const update = (id: number, changed: Partial<FileUpload>): void =>
  uploads.set(uploads.get().map((upload) => (upload.id === id ? { ...upload, ...changed } : upload)));

export function addUploads(files: readonly File[], client: QueryClient, dataset_name?: string): void {
  const { tenant_id = null } = credentials();
  const added = files.map((file): FileUpload => {
    const isResults = isResultFile(file.name);
    const state = !isResults ? "waiting" : file.size > MAX_FILE_BYTES ? "unsupported" : "reading";
    return { id: next++, file, body: file, tenant_id, sent_bytes: 0, state, dataset_name };
  });
  uploads.set([...uploads.get(), ...added]);
  for (const { id, file, state } of added)
    if (state === "reading")
      readResultFile(file).then(
        (content) => update(id, { state: "mapping", content }),
        (error: Error) => update(id, { state: "failed", error }),
      );
  if (!sending) void sendWaiting(client);
}

/** Uploads the rows of a CSV or JSONL file. @param lines the line of each row in the file */
export function sendBody({ id }: FileUpload, body: Blob, lines: readonly number[], client: QueryClient): void {
  update(id, { state: "waiting", body, lines, sent_bytes: 0, error: undefined });
  if (!sending) void sendWaiting(client);
}

/** Removes a file from the list and aborts its upload. The server may still store a file that it has received completely. */
export function removeUpload({ id, state }: FileUpload): void {
  uploads.set(uploads.get().filter((upload) => upload.id !== id));
  if (state === "sending") sending?.abort();
}

async function sendWaiting(client: QueryClient): Promise<void> {
  for (;;) {
    const upload = uploads.get().find(({ state }) => state === "waiting");
    if (!upload) break;
    sending = new AbortController();
    update(upload.id, { state: "sending" });
    await sendOne(upload, sending.signal, client);
  }
  sending = undefined;
}

async function sendOne({ id, body, tenant_id }: FileUpload, signal: AbortSignal, client: QueryClient): Promise<void> {
  try {
    const result = await sendFile<UploadResult>("/api/v1/datasets/upload-experiment", body, {
      tenant_id,
      onProgress: (sent_bytes) => update(id, { sent_bytes }),
      signal,
    });
    update(id, { state: "done", result });
    toast(`“${result.experiment.name}” uploaded`);
    await client.invalidateQueries({ queryKey: EXPERIMENTS });
  } catch (error) {
    // Does nothing for a cancelled upload, which is no longer in the list.
    update(id, { state: "failed", error: error as Error });
  }
}

/** Returns the CLI command that uploads a file in any supported format. */
export const uploadCommand = (file: string): string =>
  `npx threadmill experiments upload ${/^[\w./-]+$/.test(file) ? file : shellQuote(file)} --dataset NAME --url ${API_URL}`;
