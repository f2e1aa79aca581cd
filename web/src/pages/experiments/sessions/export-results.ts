import type { ExampleWithRuns } from "../../../../../src/experiments/contract/comparison.ts";
import { api, send } from "../../../api/request.ts";

export type ExportFormat = "csv" | "json";

const PAGE = 500;

/**
 * Exports an experiment's examples, complete inputs and outputs, and scores. CSV has one row per run and is created by the server. JSON is
 * the list that `POST /datasets/{id}/runs` returns.
 *
 * @param onBytes called with the number of downloaded bytes, for JSON with the number of characters
 */
export async function exportResults(
  dataset_id: string,
  session_id: string,
  format: ExportFormat,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const path = `/api/v1/datasets/${dataset_id}/runs`;
  const body = { session_ids: [session_id] };
  if (format === "csv") {
    const response = await send("POST", path, { body, query: { format: "csv" }, signal });
    return new Blob(await chunksOf(response, onBytes), { type: "text/csv" });
  }
  const parts: string[] = [];
  let bytes = 0;
  for (let offset = 0; ; offset += PAGE) {
    const page = await api.post<ExampleWithRuns[]>(path, { ...body, limit: PAGE, offset }, { signal });
    for (const example of page) {
      const text = JSON.stringify(example);
      bytes += text.length;
      parts.push(parts.length === 0 ? "[\n" : ",\n", text);
    }
    onBytes(bytes);
    if (page.length < PAGE) break;
  }
  if (parts.length === 0) parts.push("[");
  parts.push("\n]\n");
  return new Blob(parts, { type: "application/json" });
}

async function chunksOf(response: Response, onBytes: (bytes: number) => void): Promise<Uint8Array<ArrayBuffer>[]> {
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return chunks;
    chunks.push(value);
    bytes += value.byteLength;
    onBytes(bytes);
  }
}

export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // Revokes the URL in the next task, after the browser has started the download.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
