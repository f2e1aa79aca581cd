/** The ids of what was uploaded. */
export interface Uploaded {
  dataset: string;
  experiment: string;
}

/** A boolean, a number, and a label with a number. */
export const KEYS = ["right", "similarity", "tone"] as const;

const START = Date.UTC(2026, 0, 1);

/** About 3 KB per row, mostly text. */
const WORDS = "the model was asked about the weather in a town by the sea and it said what it knew of tides ".repeat(
  12,
);

/** A deterministic pseudo-random number from 0 to 1. */
const pseudoRandom = (a: number, b: number): number => {
  const x = Math.sin(a * 12.9898 + b * 78.233) * 43_758.5453;
  return x - Math.floor(x);
};

/** The body of the n-th upload to a dataset, as bytes: JSON.stringify of all rows at once would block the measuring thread. */
export function bodyOf(rows: number, n: number): Uint8Array {
  const head = {
    experiment_name: `experiment ${n}`,
    dataset_name: "bench",
    experiment_start_time: new Date(START).toISOString(),
    experiment_end_time: new Date(START + 3_600_000).toISOString(),
  };
  const parts = [JSON.stringify(head).slice(0, -1), ',"results":['];
  for (let index = 0; index < rows; index++) parts.push(index === 0 ? "" : ",", JSON.stringify(rowOf(index, n)));
  parts.push("]}");
  return Buffer.from(parts.join(""));
}

function rowOf(index: number, n: number) {
  const score = pseudoRandom(index, n);
  return {
    row_id: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
    inputs: { question: `${index}: ${WORDS}` },
    expected_outputs: { answer: WORDS.slice(0, 300) },
    actual_outputs: { answer: `${n}: ${WORDS}`, tokens: index },
    start_time: new Date(START + index).toISOString(),
    end_time: new Date(START + index + 100 + Math.floor(score * 1000)).toISOString(),
    error: index % 50 === n ? "timed out" : null,
    evaluation_scores: [
      { key: KEYS[0], score: score > 0.3 },
      { key: KEYS[1], score: Math.round(score * 1000) / 1000 },
      { key: KEYS[2], value: score > 0.5 ? "warm" : "dry", score: score > 0.5 ? 1 : 0 },
    ],
  };
}
