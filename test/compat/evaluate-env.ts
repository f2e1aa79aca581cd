import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** The environment by which the clients of experiments find a server, and send it their traces. */
export const langsmithEnv = (url: string): Record<string, string> => ({
  LANGSMITH_ENDPOINT: `${url}/api/v1`,
  LANGSMITH_API_KEY: "any",
  LANGSMITH_TRACING: "true",
});

const COMPLETION = { id: "chatcmpl-1", created: 1_767_225_600, model: "gpt-4o" };
const USAGE = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

const answer = () => ({
  ...COMPLETION,
  object: "chat.completion",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hello you." } }],
  usage: USAGE,
});

function* answerChunks() {
  const chunk = { ...COMPLETION, object: "chat.completion.chunk" };
  for (const content of ["Hello", " you."])
    yield { ...chunk, choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }] };
  yield { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  yield { ...chunk, choices: [], usage: USAGE };
}

export interface FakeOpenAI {
  url: string;
  stop(): void;
}

/** Answers every chat with "Hello you.", in one piece or as a stream. */
export async function startFakeOpenAI(): Promise<FakeOpenAI> {
  const server: Server = createServer(async (request, response) => {
    const { stream } = JSON.parse(await text(request)) as { stream?: boolean };
    response.setHeader("content-type", stream ? "text/event-stream" : "application/json");
    if (!stream) return response.end(JSON.stringify(answer()));
    for (const chunk of answerChunks()) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
