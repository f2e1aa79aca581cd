import type { Threadmill } from "../../src/main.ts";

/** An answer of the service, its JSON parsed. */
export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any;
  text: string;
}

/** The process was killed before it answered: what was asked for may have happened or not. */
export class Unanswered extends Error {}

/** The service, in this process or in another one. */
export interface Api {
  open(method: string, path: string, body?: unknown, signal?: AbortSignal, headers?: object): Promise<Response>;
  /** @throws Unanswered */
  send(method: string, path: string, body?: unknown): Promise<Answer>;
}

const initOf = (method: string, body: unknown, signal?: AbortSignal, headers: object = {}): RequestInit => ({
  method,
  signal,
  headers: { "content-type": "application/json", ...headers },
  ...(body !== undefined && { body: JSON.stringify(body) }),
});

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
  return { status: response.status, text, body: isJson && text !== "" ? JSON.parse(text) : undefined };
}

export function inProcess(threadmill: Threadmill): Api {
  const open: Api["open"] = async (method, path, ...more) =>
    threadmill.fetch(new Request(`http://localhost${path}`, initOf(method, ...more)));
  return { open, send: async (...request) => answerOf(await open(...request)) };
}

/** `up` resolves when there is a process that answers; a request that breaks off is given up when the next one is up. */
export function overHttp(server: { url: string; up(): Promise<void> }): Api {
  const open: Api["open"] = async (method, path, ...more) => {
    await server.up();
    return fetch(server.url + path, initOf(method, ...more));
  };
  return {
    open,
    async send(...request) {
      try {
        return await answerOf(await open(...request));
      } catch (error) {
        await server.up();
        throw new Unanswered(`${request[0]} ${request[1]}`, { cause: error });
      }
    },
  };
}
