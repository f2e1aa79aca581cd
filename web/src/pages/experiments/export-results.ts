import type { ExampleWithRuns } from "../../../../src/experiments/contract/comparison.ts";
import { api, send } from "../../api/request.ts";

export type ExportFormat = "csv" | "json";

/** Examples that are fetched at a time. */
const PAGE = 500;

/**
 * An experiment with its examples, whole inputs and outputs, and scores. CSV has a line a run, as the server writes it; JSON is the
 * list of `POST /datasets/{id}/runs`.
 *
 * @param onBytes how much of it is there
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

/** Gives a file to the browser to save. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has taken it when the present turn is over.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
