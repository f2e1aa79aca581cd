import type { QueryClient } from "@tanstack/react-query";
import type { UploadResult } from "../../../../../src/experiments/contract/upload.ts";
import { API_URL, sendFile } from "../../../api/request.ts";
import { createStore } from "../../../store.ts";
import { shellQuote } from "../../../ui/format.ts";
import { toast } from "../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../queries.ts";

/** A file upload. The server stores the file completely or not at all. */
export interface FileUpload {
  id: number;
  file: File;
  sent_bytes: number;
  /** Files are uploaded in order, one at a time. JSONL, NDJSON and CSV files are `unsupported` and not uploaded. */
  state: "waiting" | "sending" | "done" | "failed" | "unsupported";
  result?: UploadResult;
  error?: Error;
}

// Module state, so that uploads continue when the user leaves the page.
const uploads = createStore<readonly FileUpload[]>([]);
let next = 0;
let sending: AbortController | undefined;

export const useUploadList = uploads.use;

const UNSUPPORTED = /\.(jsonl|ndjson|csv)$/i;

const update = (id: number, changed: Partial<FileUpload>): void =>
  uploads.set(uploads.get().map((upload) => (upload.id === id ? { ...upload, ...changed } : upload)));

export function addUploads(files: readonly File[], client: QueryClient): void {
  const added = files.map((file): FileUpload => {
    const state = UNSUPPORTED.test(file.name) ? "unsupported" : "waiting";
    return { id: next++, file, sent_bytes: 0, state };
  });
  uploads.set([...uploads.get(), ...added]);
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

async function sendOne({ id, file }: FileUpload, signal: AbortSignal, client: QueryClient): Promise<void> {
  try {
    const result = await sendFile<UploadResult>("/api/v1/datasets/upload-experiment", file, {
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
