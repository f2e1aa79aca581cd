import { PHRASES, TOPICS, type Topic } from "./sample-topics.ts";

export const SAMPLE_DATASET = "Sample: support questions";

/** One way to answer the questions, as somebody might try it. */
interface Variant {
  name: string;
  description: string;
  metadata: Record<string, string>;
  /** How often the fact is right. */
  correct: number;
  /** How many of the words are others than those that were expected. */
  reworded: number;
  isShort: boolean;
  /** Median, in ms. */
  latency_ms: number;
  /** How often it gives up. */
  errors: number;
}

/** The first is the baseline, the second is better, and the third is quicker but much further from what was expected. */
const VARIANTS: readonly Variant[] = [
  {
    name: "sample v1: first prompt",
    description: "The prompt that the support desk started with.",
    metadata: { model: "small", prompt: "v1" },
    correct: 0.79,
    reworded: 0.22,
    isShort: false,
    latency_ms: 1_250,
    errors: 0.015,
  },
  {
    name: "sample v2: with the handbook",
    description: "The same model with the handbook's pages in its prompt.",
    metadata: { model: "small", prompt: "v2", retrieval: "handbook" },
    correct: 0.91,
    reworded: 0.1,
    isShort: false,
    latency_ms: 1_480,
    errors: 0.005,
  },
  {
    name: "sample v3: short answers",
    description: "The handbook, and the wish for short answers.",
    metadata: { model: "small", prompt: "v3", retrieval: "handbook" },
    correct: 0.84,
    reworded: 0,
    isShort: true,
    latency_ms: 640,
    errors: 0.01,
  },
];

export const SAMPLE_NAMES: readonly string[] = VARIANTS.map(({ name }) => name);

/** The question to which the third has no answer at all, while the others have the expected one. */
const WORST = { topic: "delete my account", phrase: "Please explain step by step how to …." };

/** Times between the experiments, and between the starts of an experiment's runs, in ms. */
const APART_MS = 26 * 3_600_000;
const STEP_MS = 350;

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
 * Three experiments on 200 questions to a support desk, as bodies of uploads. The answers are made up, always the same ones; the
 * scores are not: `correctness` looks for the fact in the answer, and `similarity` is the F1 of its words and those expected.
 *
 * @param now the third experiment has just ended
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
    const lasts_ms = questions.length * STEP_MS + 60_000;
    const start_ms = now.getTime() - lasts_ms - (VARIANTS.length - 1 - index) * APART_MS;
    const random = randomOf(`${variant.name}`);
    return {
      dataset_name: SAMPLE_DATASET,
      dataset_description: "200 made-up questions to a support desk, and three ways to answer them.",
      experiment_name: variant.name,
      experiment_description: variant.description,
      experiment_metadata: variant.metadata,
      experiment_start_time: new Date(start_ms).toISOString(),
      experiment_end_time: new Date(start_ms + lasts_ms).toISOString(),
      results: questions.map((question, at) => rowOf(question, variant, start_ms + at * STEP_MS, random)),
    };
  });
}

function rowOf(question: Question, variant: Variant, start_ms: number, random: () => number): Row {
  const { row_id, text, topic, isWorst } = question;
  const luck = { error: random(), correct: random(), latency: random() };
  const words = answerOf(topic, variant, luck.correct < variant.correct, random);
  const fails = !isWorst && luck.error < variant.errors;
  const answer = isWorst ? (variant.isShort ? "No." : topic.answer) : words;
  // Most are near the median, and some take three times as long.
  const latency_ms = fails ? 30_000 : variant.latency_ms * (0.7 + 0.5 * luck.latency + 2 * luck.latency ** 12);
  return {
    row_id,
    inputs: { question: text },
    expected_outputs: { answer: topic.answer },
    actual_outputs: fails ? null : { answer },
    evaluation_scores: fails ? [] : scoresOf(topic, answer),
    start_time: new Date(start_ms).toISOString(),
    end_time: new Date(start_ms + Math.round(latency_ms)).toISOString(),
    run_name: "answer",
    error: fails ? "The model did not answer within 30 s." : null,
  };
}

function answerOf(topic: Topic, { isShort, reworded }: Variant, isCorrect: boolean, random: () => number): string {
  const whole = isShort ? topic.short : topic.answer;
  const [before = "", after = ""] = whole.split(topic.fact);
  const part = (text: string) => text.replace(/\w+/g, (word) => (random() < reworded ? otherWord(random) : word));
  return `${part(before)}${isCorrect ? topic.fact : topic.wrong}${part(after)}`;
}

const OTHER_WORDS = ["simply", "then", "usually", "please", "there", "just", "normally", "first", "also", "now"];
const otherWord = (random: () => number): string => OTHER_WORDS[Math.floor(random() * OTHER_WORDS.length)] as string;

function scoresOf({ answer, fact }: Topic, given: string): Row["evaluation_scores"] {
  const isCorrect = given.includes(fact);
  return [
    { key: "correctness", score: isCorrect ? 1 : 0, ...(!isCorrect && { comment: `It does not say “${fact}”.` }) },
    { key: "similarity", score: similarity(answer, given) },
  ];
}

/** The F1 of the words of two texts, to three decimals. */
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

/** Numbers from 0 to 1 that a text decides, the same ones everywhere (mulberry32 over FNV-1a). */
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

/** An id that follows from the question, so that it is the same example in each of the experiments. */
function idOf(question: string): string {
  const random = randomOf(question);
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join("");
  // Version 8: made in a way of its own.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
