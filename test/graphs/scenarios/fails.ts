import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { adds, Steps } from "./chain.ts";

const Kind = Annotation.Root({ ...Steps.spec, kind: Annotation<string>(), value: Annotation<unknown>() });

class PaymentError extends Error {
  override name = "PaymentError";
}

const circular: Record<string, unknown> = {};
circular.self = circular;

const THROWN: Record<string, unknown> = {
  type_error: new TypeError("steps is not iterable"),
  own_class: new PaymentError("card refused"),
  string: "just a string",
  object: { code: 42 },
  circular_object: circular,
  null: null,
  undefined: undefined,
};

/** Throws what `kind` names; any other kind passes. */
export const fails = new StateGraph(Kind)
  .addNode("first", adds("first"))
  .addNode("second", ({ kind }) => {
    if (kind in THROWN) throw THROWN[kind];
    return { steps: ["second"] };
  })
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", END)
  .compile();

const ODD: Record<string, unknown> = {
  bigint: { value: { count: 10n } },
  circular: { value: circular },
  function: { value: () => 1 },
  symbol: { value: Symbol("odd") },
  nul: { value: "a\0b" },
  surrogate: { value: "a\ud800b" },
  nan: { value: Number.NaN },
  date: { value: new Date(0) },
  string: "not an update",
  number: 7,
};

/** Returns, or with `emit_` before its name emits, what `kind` names. */
export const nonsense = new StateGraph(Kind)
  .addNode("first", adds("first"))
  .addNode("odd", ({ kind }, config: LangGraphRunnableConfig) => {
    if (!kind.startsWith("emit_")) return ODD[kind] as { value: unknown };
    config.writer?.((ODD[kind.slice("emit_".length)] as { value: unknown }).value);
    return { steps: ["odd"] };
  })
  .addEdge(START, "first")
  .addEdge("first", "odd")
  .addEdge("odd", END)
  .compile();

/** Takes its graph host with it. */
export const dies = new StateGraph(Steps)
  .addNode("die", () => process.exit(1))
  .addEdge(START, "die")
  .addEdge("die", END)
  .compile();
