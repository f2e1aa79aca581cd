import { createRoute, z } from "@hono/zod-openapi";
import { jsonResponse } from "../../../platform/contract/fields.ts";
import { asOf, LATEST } from "../fields.ts";
import { errors } from "../responses.ts";
import { Dataset, datasetParams } from "./datasets.ts";

const download = (format: string, content_type: string, summary: string) =>
  createRoute({
    method: "get",
    path: `/datasets/{dataset_id}/${format}`,
    operationId: `download_dataset_${format}`,
    summary,
    request: { params: datasetParams, query: z.object({ as_of: asOf.default(LATEST) }) },
    responses: {
      200: { description: "The file.", content: { [content_type]: { schema: z.string() } } },
      ...errors(400, 404),
    },
  });

export const datasetFileRoutes = {
  uploadCsvDataset: createRoute({
    method: "post",
    path: "/datasets/upload",
    operationId: "upload_csv_dataset",
    summary: "Create a dataset from a CSV file with a header",
    request: {
      body: {
        required: true,
        content: {
          "multipart/form-data": {
            schema: z
              .record(z.string(), z.unknown())
              .describe(
                "Required: `file`, `input_keys`. Optional: `output_keys`, `metadata_keys`, `id`, `name` (default: the name of the file), " +
                  "`description`, `data_type`. The fields that end with `_keys` contain names of columns and can be repeated.",
              ),
          },
        },
      },
    },
    responses: { 200: jsonResponse(Dataset, "The dataset."), ...errors(400, 409) },
  }),

  csv: download(
    "csv",
    "text/csv",
    "Download a dataset as CSV, with one column per key of the inputs, outputs and metadata",
  ),
  jsonl: download("jsonl", "application/jsonl", "Download a dataset as JSON Lines, with one example per line"),
  openai: download("openai", "application/jsonl", "Download a chat dataset in the OpenAI evals format"),
  openai_ft: download("openai_ft", "application/jsonl", "Download a chat dataset in the OpenAI fine-tuning format"),
};
