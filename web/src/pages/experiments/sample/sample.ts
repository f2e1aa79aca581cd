import { CLOSINGS, OPENINGS, PHRASES, TOPICS, type Topic } from "./sample-topics.ts";

export const SAMPLE_DATASET = "Sample: support questions";

/** A variant of the agent under evaluation. */
interface Variant {
  name: string;
  description: string;
  metadata: Record<string, string>;
  /** Share of correct answers. */
  correct: number;
  /** Share of answers with a polite sentence before or after the answer, each. */
  polite: number;
  /** Share of answers that contain only the sentence with the fact. */
  partial: number;
  isShort: boolean;
  /** Median latency. */
  latency_ms: number;
  /** Share of failed runs. */
  errors: number;
}

/**
 * The first variant is the baseline. The second variant scores better. The third variant is faster, but its answers are less similar to
 * the expected answers.
 */
const VARIANTS: readonly Variant[] = [
  {
    name: "sample v1: first prompt",
    description: "The support desk's first prompt.",
    metadata: { model: "small", prompt: "v1" },
    correct: 0.79,
    polite: 0.7,
    partial: 0.2,
    isShort: false,
    latency_ms: 1_250,
    errors: 0.015,
  },
  {
    name: "sample v2: with the handbook",
    description: "Same model, with the support handbook in the prompt.",
    metadata: { model: "small", prompt: "v2", retrieval: "handbook" },
    correct: 0.91,
    polite: 0.2,
    partial: 0.1,
    isShort: false,
    latency_ms: 1_480,
    errors: 0.005,
  },
  {
    name: "sample v3: short answers",
    description: "Like v2, with an instruction to answer briefly.",
    metadata: { model: "small", prompt: "v3", retrieval: "handbook" },
    correct: 0.84,
    polite: 0,
    partial: 0,
    isShort: true,
    latency_ms: 640,
    errors: 0.01,
  },
];

export const SAMPLE_NAMES: readonly string[] = VARIANTS.map(({ name }) => name);

/** A question that the third variant answers with “No.”, while the other variants give the expected answer. */
const WORST = { topic: "delete my account", phrase: "Please explain step by step how to …." };

/** Time between the starts of consecutive experiments, and between the starts of consecutive runs of an experiment. */
const EXPERIMENT_INTERVAL_MS = 26 * 3_600_000;
const RUN_INTERVAL_MS = 350;

interface Question {
  row_id: string;
  text: string;
  topic: Topic;
  isWorst: boolean;
}

interface Row {
  row_id: string;
  inputs: { question: string };
  expected_outputs: { answer: string };
  actual_outputs: { answer: string } | null;
  evaluation_scores: { key: string; score: number; comment?: string }[];
  start_time: string;
  end_time: string;
  run_name: string;
  error: string | null;
}

/**
 * Returns upload bodies of three experiments on 200 support questions. The answers are generated deterministically. The scores are computed
 * from the answers: `correctness` is whether the answer contains the fact, and `similarity` is the F1 score of the answer's words and the
 * words of the expected answer.
 *
 * @param now end time of the third experiment
 */
export function sampleUploads(now: Date) {
  const questions = TOPICS.flatMap((topic) =>
    PHRASES.map((phrase): Question => {
      const text = phrase.replace("…", topic.goal);
      const isWorst = topic.goal === WORST.topic && phrase === WORST.phrase;
      return { row_id: idOf(text), text, topic, isWorst };
    }),
  );
  return VARIANTS.map((variant, index) => {
    const lasts_ms = questions.length * RUN_INTERVAL_MS + 60_000;
    const start_ms = now.getTime() - lasts_ms - (VARIANTS.length - 1 - index) * EXPERIMENT_INTERVAL_MS;
    const random = randomOf(`${variant.name}`);
    return {
      dataset_name: SAMPLE_DATASET,
      dataset_description: "200 generated questions to a support desk, answered by three variants of an agent.",
      experiment_name: variant.name,
      experiment_description: variant.description,
      experiment_metadata: variant.metadata,
      experiment_start_time: new Date(start_ms).toISOString(),
      experiment_end_time: new Date(start_ms + lasts_ms).toISOString(),
      results: questions.map((question, at) => rowOf(question, variant, start_ms + at * RUN_INTERVAL_MS, random)),
    };
  });
}

function rowOf(question: Question, variant: Variant, start_ms: number, random: () => number): Row {
  const { row_id, text, topic, isWorst } = question;
  const draw = { error: random(), correct: random(), latency: random() };
  const words = answerOf(topic, variant, draw.correct < variant.correct, random);
  const fails = !isWorst && draw.error < variant.errors;
  const answer = isWorst ? (variant.isShort ? "No." : topic.answer) : words;
  // Most latencies are near the median, and some are three times as long.
  const latency_ms = fails ? 30_000 : variant.latency_ms * (0.7 + 0.5 * draw.latency + 2 * draw.latency ** 12);
  return {
    row_id,
    inputs: { question: text },
    expected_outputs: { answer: topic.answer },
    actual_outputs: fails ? null : { answer },
    evaluation_scores: fails ? [] : scoresOf(topic, answer),
    start_time: new Date(start_ms).toISOString(),
    end_time: new Date(start_ms + Math.round(latency_ms)).toISOString(),
    run_name: "answer",
    error: fails ? "The model did not respond within 30 s." : null,
  };
}

function answerOf(topic: Topic, variant: Variant, isCorrect: boolean, random: () => number): string {
  const { isShort, polite, partial } = variant;
  const whole = isShort ? topic.short : topic.answer;
  const sentences = whole.split(/(?<=\.) /);
  const main = random() < partial ? (sentences.find((sentence) => sentence.includes(topic.fact)) ?? whole) : whole;
  const said = isCorrect ? main : main.replace(topic.fact, topic.wrong);
  const politely = (phrases: readonly string[]) => {
    const [isPolite, choice] = [random() < polite, random()];
    return isPolite ? [phrases[Math.floor(choice * phrases.length)] as string] : [];
  };
  return [...politely(OPENINGS), said, ...politely(CLOSINGS)].join(" ");
}

function scoresOf({ answer, fact }: Topic, given: string): Row["evaluation_scores"] {
  const isCorrect = given.includes(fact);
  return [
    {
      key: "correctness",
      score: isCorrect ? 1 : 0,
      ...(!isCorrect && { comment: `The answer does not contain “${fact}”.` }),
    },
    { key: "similarity", score: similarity(answer, given) },
  ];
}

/** F1 score of two texts' words, rounded to three decimals. */
function similarity(expected: string, given: string): number {
  const [a, b] = [wordsOf(expected), wordsOf(given)];
  const rest = [...a];
  const shared = b.filter((word) => {
    const at = rest.indexOf(word);
    if (at >= 0) rest.splice(at, 1);
    return at >= 0;
  }).length;
  return Math.round((2_000 * shared) / (a.length + b.length)) / 1_000;
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\w-]+/g) ?? [];

/**
 * Creates a pseudorandom number generator that is seeded with a string (mulberry32 with FNV-1a) and returns numbers in [0, 1).
 */
function randomOf(text: string): () => number {
  let state = 2_166_136_261;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 16_777_619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a deterministic ID, so that all experiments share a question's example. */
function idOf(question: string): string {
  const random = randomOf(question);
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join("");
  // UUID version 8: custom format.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
