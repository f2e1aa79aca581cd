import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional, searchable } from "../../platform/contract/fields.ts";
import { Dataset } from "./datasets/datasets.ts";
import { FeedbackInput } from "./feedback/feedback.ts";
import { indexedName, time, uuidOrHex } from "./fields.ts";
import { errors } from "./responses.ts";
import { Session } from "./sessions.ts";

/** One example of the dataset with one run on it. */
export const UploadRow = z
  .object({
    row_id: uuidOrHex.describe(
      "ID of the example. In every experiment of the dataset, use the same ID for the same example.",
    ),
    inputs: jsonObject,
    expected_outputs: optional(jsonObject),
    actual_outputs: optional(jsonObject),
    evaluation_scores: optional(z.array(FeedbackInput)),
    start_time: time,
    end_time: time,
    run_name: optional(z.string()),
    error: optional(z.string()),
    run_metadata: optional(jsonObject),
  })
  .openapi("ExperimentResultRow");
export type UploadRow = z.output<typeof UploadRow>;

/** The fields of an upload except its rows. */
export const UploadHead = z.object({
  experiment_name: indexedName,
  experiment_description: optional(z.string()),
  experiment_start_time: time,
  experiment_end_time: time,
  dataset_id: optional(uuidOrHex),
  dataset_name: optional(indexedName),
  dataset_description: optional(z.string()),
  experiment_metadata: optional(searchable),
  summary_experiment_scores: optional(z.array(FeedbackInput)),
});
export type UploadHead = z.output<typeof UploadHead>;

const ExperimentUpload = UploadHead.extend({ results: z.array(UploadRow) }).openapi("ExperimentResultsUpload");

const UploadResult = z.object({ dataset: Dataset, experiment: Session }).openapi("ExperimentResultsUploadResult");
export type UploadResult = z.output<typeof UploadResult>;

export const uploadRoutes = {
  /** Stores all rows of an upload, or none. The statistics in the response are null, as in LangSmith. */
  uploadExperiment: createRoute({
    method: "post",
    path: "/datasets/upload-experiment",
    operationId: "upload_experiment",
    summary: "Upload the results of an experiment",
    request: { body: jsonBody(ExperimentUpload) },
    responses: {
      200: jsonResponse(
        UploadResult,
        "The dataset and the experiment. The statistics are null in this response; read the experiment to get them.",
      ),
      ...errors(400, 409, 413),
    },
  }),
};
