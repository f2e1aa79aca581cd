import type { OpenStream } from "../support/open-stream.ts";
import { until } from "../support/until.ts";
import type { Scenario, Wire } from "./scenario.ts";

export const CONFIG = { config: "test/graphs/a2a/langgraph.json" };

/** A message of the user, in version 1.0. */
export const userMessage = (text: string, ids: { contextId?: string | undefined; taskId?: string } = {}): Wire => ({
  messageId: crypto.randomUUID(),
  role: "ROLE_USER",
  parts: [{ text }],
  ...ids,
});

/** The texts of a message or an artifact. */
export const textsIn = ({ parts }: Wire): string => parts.map(({ text = "" }: Wire) => text).join("");

/** The updates of a stream. It consists of data lines alone. */
const updatesIn = (text: string): Wire[] =>
  text
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: "))
    .map((frame) => JSON.parse(frame.slice("data: ".length)))
    .map(({ result, error }) => result ?? { error });

interface Answer {
  status: number;
  result?: Wire;
  error?: { code: number; message: string };
}

interface TaskPage {
  tasks: Wire[];
  nextPageToken: string;
}

/** A client of the endpoint in version 1.0 that sees every field. */
export class A2aCaller {
  readonly #api: Pick<Scenario, "send" | "service">;
  readonly #headers: Record<string, string>;

  constructor(api: Pick<Scenario, "send" | "service">, headers: Record<string, string> = {}) {
    this.#api = api;
    this.#headers = headers;
  }

  async call(assistant: string, method: string, params: unknown): Promise<Answer & { result: Wire }> {
    const body = { jsonrpc: "2.0", id: 7, method, params };
    const answer = await this.#api.send("POST", `/a2a/${assistant}`, body, this.#headers);
    return { status: answer.status, ...(answer.body ?? updatesIn(answer.text).at(-1)) };
  }

  async #result(...given: Parameters<A2aCaller["call"]>): Promise<Wire> {
    const { result, error } = await this.call(...given);
    if (error) throw new Error(`${given[1]} was answered ${error.code}: ${error.message}`);
    return result;
  }

  send = async (assistant: string, message: Wire, configuration: object = {}): Promise<Wire> =>
    (await this.#result(assistant, "SendMessage", { message, configuration })).task;

  get = (assistant: string, id: string): Promise<Wire> => this.#result(assistant, "GetTask", { id });

  list = (assistant: string, query: object): Promise<TaskPage> => this.#result(assistant, "ListTasks", query);

  reaches = (assistant: string, id: string, state: string): Promise<unknown> =>
    until(`the task is ${state}`, async () => (await this.get(assistant, id)).status.state === `TASK_STATE_${state}`);

  /** All updates of a new task. */
  stream = async (assistant: string, message: Wire): Promise<Wire[]> =>
    (await this.open(assistant, "SendStreamingMessage", { message })).rest();

  subscribe = async (assistant: string, id: string): Promise<Wire[]> =>
    (await this.open(assistant, "SubscribeToTask", { id })).rest();

  /** The texts of the artifacts, by their IDs, as a client collects them. */
  artifactsIn(updates: readonly Wire[]): Record<string, string> {
    const texts: Record<string, string> = {};
    for (const { artifactUpdate } of updates) {
      if (!artifactUpdate) continue;
      const { artifactId } = artifactUpdate.artifact;
      texts[artifactId] = (artifactUpdate.append ? texts[artifactId] : "") + textsIn(artifactUpdate.artifact);
    }
    return texts;
  }

  /** A stream that is read as it comes. */
  async open(assistant: string, method: string, params: object) {
    const abort = new AbortController();
    const request = new Request(`http://localhost/a2a/${assistant}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...this.#headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }),
      signal: abort.signal,
    });
    return readUpdates(await this.#api.service.threadmill.fetch(request), abort);
  }
}

/** Like {@link OpenStream}, for a response that consists of data lines alone. */
export function readUpdates(response: Response, abort: AbortController) {
  const body = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as never);
  const reader = body.getReader() as ReadableStreamDefaultReader<string>;
  let text = "";
  const updates = () => updatesIn(text.slice(0, text.lastIndexOf("\n\n") + 2));
  async function readMore(): Promise<boolean> {
    const { done, value = "" } = await reader.read();
    text += value;
    return !done;
  }
  return {
    status: response.status satisfies OpenStream["status"],
    /** Reads on until the updates so far fit; fails when the stream ends before. */
    async until(fits: (updates: Wire[]) => unknown): Promise<Wire[]> {
      while (!fits(updates())) if (!(await readMore())) throw new Error(`The stream ended before: ${text}`);
      return updates();
    },
    async rest(): Promise<Wire[]> {
      while (await readMore());
      return updates();
    },
    async hangUp(): Promise<void> {
      await reader.cancel();
      abort.abort();
    },
  };
}
