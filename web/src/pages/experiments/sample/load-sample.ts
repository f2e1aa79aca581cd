import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import type { UploadResult } from "../../../../../src/experiments/contract/upload.ts";
import { api } from "../../../api/request.ts";
import { sampleUploads } from "./sample.ts";

export interface Sample {
  dataset_id: string;
  session_ids: string[];
}

/**
 * Uploads the sample experiments one after the other. An existing experiment with the same name is reused, so loading the sample twice is
 * safe.
 *
 * @param onStep called with the number of loaded experiments
 */
export async function loadSample(onStep: (done: number, total: number) => void, signal: AbortSignal): Promise<Sample> {
  const uploads = sampleUploads(new Date());
  const session_ids: string[] = [];
  let dataset_id: string | undefined;
  for (const [done, upload] of uploads.entries()) {
    onStep(done, uploads.length);
    const query = { name: upload.experiment_name };
    const [existing] = await api.get<Session[]>("/api/v1/sessions", { query, signal });
    if (existing?.reference_dataset_id) {
      dataset_id ??= existing.reference_dataset_id;
      session_ids.push(existing.id);
      continue;
    }
    // Refers to the dataset by ID, because the dataset may have been renamed.
    const to = dataset_id === undefined ? {} : { dataset_name: undefined, dataset_id };
    const body = { ...upload, ...to };
    const { dataset, experiment } = await api.post<UploadResult>("/api/v1/datasets/upload-experiment", body, {
      signal,
    });
    dataset_id ??= dataset.id;
    session_ids.push(experiment.id);
  }
  const [baseline_experiment_id] = session_ids;
  await api.patch(`/api/v1/datasets/${dataset_id}`, { baseline_experiment_id }, { signal });
  return { dataset_id: dataset_id as string, session_ids };
}
