import { PromptTemplate } from "@langchain/core/prompts";
import {
  Annotation,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  value: Annotation<unknown>(),
  seen: Annotation<string[]>(),
  /** What the run was configured with. */
  configured: Annotation<unknown>(),
});

/** Where in a value there are objects of which class, plain ones left out. */
function classesIn(value: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  const isPlain = [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(value));
  const parts = value instanceof Map || value instanceof Set ? [...value].entries() : Object.entries(value);
  return [
    ...(isPlain ? [] : [`${path}: ${value.constructor.name}`]),
    ...[...parts]
      .filter(([name]) => isPlain || !String(name).startsWith("lc_"))
      .flatMap(([name, part]) => classesIn(part, `${path}.${name}`)),
  ];
}

/** Says of which classes the state is that it was given. */
export const look = new StateGraph(State)
  .addNode("look", ({ value, messages }, { configurable, context }: LangGraphRunnableConfig) => {
    const configured = configurable?.value ?? context?.value;
    const seen = Object.entries({ value, messages, configured }).flatMap(([name, part]) => classesIn(part, name));
    return { seen, configured };
  })
  .addEdge(START, "look")
  .addEdge("look", END)
  .compile();

/** The same for an answer, once it has been stored: the second question has the node begin anew. */
export const ask = new StateGraph(State)
  .addNode("ask", () => {
    const value = interrupt("first?");
    interrupt("second?");
    return { value, seen: classesIn(value, "value") };
  })
  .addEdge(START, "ask")
  .addEdge("ask", END)
  .compile();

/** The same for what is sent to a node. */
export const take = new StateGraph(State)
  .addNode("idle", () => ({}), { ends: ["take"] })
  .addNode("take", (value: unknown) => ({ value, seen: classesIn(value, "value") }))
  .addEdge(START, "idle")
  .addEdge("idle", END)
  .addEdge("take", END)
  .compile();

/** Stores what it makes itself: instances, with what the client has sent inside. */
export const make = new StateGraph(State)
  .addNode("make", ({ value }) => ({
    value: {
      map: new Map([["sent", value]]),
      set: new Set([value]),
      nothing: undefined,
      prompt: new PromptTemplate({ template: "{a}", inputVariables: ["a"] }),
    },
  }))
  .addEdge(START, "make")
  .addEdge("make", END)
  .compile();
