import { randomUUID } from "node:crypto";

/** A row of an upload, as a caller writes it. */
export interface Row {
  row_id: string;
  inputs: Record<string, unknown>;
  expected_outputs?: Record<string, unknown> | null;
  actual_outputs?: Record<string, unknown> | null;
  evaluation_scores?: Record<string, unknown>[] | null;
  start_time: string;
  end_time: string;
  run_name?: string | null;
  error?: string | null;
  run_metadata?: Record<string, unknown> | null;
}

/** An experiment as the original's documentation shows one: two rows, times without an offset, a summary score. */
export const documented = () => ({
  experiment_name: `first-look-${randomUUID()}`,
  experiment_description: "Capitals, asked plainly",
  experiment_start_time: "2024-08-03T00:12:38",
  experiment_end_time: "2024-08-03T00:12:43+00:00",
  dataset_name: `capitals-${randomUUID()}`,
  dataset_description: "Countries and their capitals",
  experiment_metadata: { model: "small", temperature: 0 },
  summary_experiment_scores: [{ key: "f1", score: 0.87, comment: "over both" }],
  results: [
    {
      row_id: randomUUID(),
      inputs: { country: "France" },
      expected_outputs: { capital: "Paris" },
      actual_outputs: { capital: "Paris" },
      evaluation_scores: [
        { key: "correct", score: true },
        { key: "tone", value: "dry", score: 0.25, feedback_source: { type: "model" } },
      ],
      start_time: "2024-08-03T00:12:39",
      end_time: "2024-08-03T00:12:41",
      run_name: "ask",
      run_metadata: { tokens: 12 },
    },
    {
      row_id: randomUUID(),
      inputs: { country: "Australia" },
      expected_outputs: { capital: "Canberra" },
      actual_outputs: { capital: "Sydney" },
      evaluation_scores: [
        { key: "correct", score: false, comment: "a common mistake" },
        { key: "tone", value: "warm", score: 0.75 },
      ],
      start_time: "2024-08-03T00:12:40",
      end_time: "2024-08-03T00:12:43",
      error: "too sure of itself",
    },
  ] as Row[],
});

export type Upload = Omit<ReturnType<typeof documented>, "dataset_name"> & {
  dataset_name?: string;
  dataset_id?: string;
};

/** An experiment of `n` rows over a dataset, each row with its own scores. */
export function experimentOf(
  n: number,
  scores: (index: number) => Record<string, unknown>[],
  more: Partial<Upload> = {},
  ids: (index: number) => string = (index) => `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
): Upload {
  const start = Date.UTC(2026, 0, 1);
  return {
    ...documented(),
    experiment_start_time: new Date(start).toISOString(),
    experiment_end_time: new Date(start + 3_600_000).toISOString(),
    summary_experiment_scores: [],
    results: Array.from({ length: n }, (_, index) => ({
      row_id: ids(index),
      inputs: { question: `What is ${index} and ${index}?` },
      expected_outputs: { answer: 2 * index },
      actual_outputs: { answer: 2 * index + (index % 7 === 0 ? 1 : 0) },
      evaluation_scores: scores(index),
      start_time: new Date(start + index).toISOString(),
      end_time: new Date(start + index + 100 + (index % 50)).toISOString(),
    })),
    ...more,
  };
}
