import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import type { UploadResult } from "../../../../src/experiments/contract/upload.ts";
import { sendFile } from "../../api/request.ts";
import { toast } from "../../ui/toast.tsx";
import { EXPERIMENTS } from "./queries.ts";

/** A file on its way to the server. All of it is stored, or nothing. */
export interface FileUpload {
  id: number;
  file: File;
  sent_bytes: number;
  /** One at a time is sent, in the order in which they were given. What is no JSON is not sent: the command line knows it. */
  state: "waiting" | "sending" | "done" | "failed" | "no json";
  result?: UploadResult;
  error?: Error;
}

// They belong to no page: whoever goes to another one while a file is sent finds it sent.
let uploads: readonly FileUpload[] = [];
let next = 0;
let sending: AbortController | undefined;
const listeners = new Set<() => void>();

function change(changed: readonly FileUpload[]): void {
  uploads = changed;
  for (const listener of listeners) listener();
}

const NO_JSON = /\.(jsonl|ndjson|csv)$/i;

const update = (id: number, changed: Partial<FileUpload>): void =>
  change(uploads.map((upload) => (upload.id === id ? { ...upload, ...changed } : upload)));

/** Sends files after those that are still to be sent. */
export function addUploads(files: readonly File[], client: QueryClient): void {
  const added = files.map((file): FileUpload => {
    const state = NO_JSON.test(file.name) ? "no json" : "waiting";
    return { id: next++, file, sent_bytes: 0, state };
  });
  change([...uploads, ...added]);
  if (!sending) void sendWaiting(client);
}

/** Takes a file from the list; nothing of one that is still being sent is stored. */
export function removeUpload({ id, state }: FileUpload): void {
  change(uploads.filter((upload) => upload.id !== id));
  if (state === "sending") sending?.abort();
}

async function sendWaiting(client: QueryClient): Promise<void> {
  for (;;) {
    const upload = uploads.find(({ state }) => state === "waiting");
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
    toast(`“${result.experiment.name}” is uploaded.`);
    await client.invalidateQueries({ queryKey: EXPERIMENTS });
  } catch (error) {
    // Of a cancelled one nothing is left in the list.
    update(id, { state: "failed", error: error as Error });
  }
}

export const useUploadList = (): readonly FileUpload[] =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => uploads,
  );
