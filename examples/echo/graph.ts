import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

interface PlainMessage {
  role: string;
  content: unknown;
}

// A minimal state: plain data without message classes.
const State = Annotation.Root({
  text: Annotation<string>(),
  echo: Annotation<unknown>(),
  messages: Annotation<PlainMessage[]>({
    reducer: (before, added) => before.concat(added),
    default: () => [],
  }),
});

function echo(state: typeof State.State): typeof State.Update {
  const last = state.messages.at(-1);
  // Old messages stay in the state of a thread. If the last one is an echo, the
  // run was started with `text`.
  if (last === undefined || last.role === "assistant") return { echo: state.text };
  return { echo: last.content, messages: [{ role: "assistant", content: last.content }] };
}

export const graph = new StateGraph(State)
  .addNode("echo_input", echo)
  .addEdge(START, "echo_input")
  .addEdge("echo_input", END)
  .compile();
