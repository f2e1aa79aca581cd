import type { Client } from "@langchain/langgraph-sdk";
import { expect } from "vitest";

/** Makes a client of the version under test, for the service under test. */
export type NewClient = () => Client;

/** An event as both versions of the client hand it out. */
export interface ClientEvent {
  id?: string;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into data of every shape
  data: any;
}

/** All events of a stream, at its end. */
export async function gather(stream: AsyncIterable<unknown>): Promise<ClientEvent[]> {
  const events: ClientEvent[] = [];
  for await (const event of stream) events.push(event as ClientEvent);
  return events;
}

/** The names of events, each once. */
export const namesOf = (events: ClientEvent[]): string[] => [...new Set(events.map(({ event }) => event))];

/** The data of the events of one name. */
export const dataOf = (events: ClientEvent[], name: string): unknown[] =>
  events.filter(({ event }) => event === name).map(({ data }) => data);

/** A text that no other test uses, to find one's own records by. */
export const unique = (): string => crypto.randomUUID();

export const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|\+00:00)$/);

/** The client's error for an HTTP status: the body is its text. */
export const httpError = (status: number, detail: string) =>
  expect.objectContaining({
    status,
    text: expect.stringContaining(detail),
    message: expect.stringContaining(`HTTP ${status}: `),
  });

/** A run of the graph `waiting` on a new thread, once it has begun to wait. */
export async function startWaiting(
  client: Client,
): Promise<{ thread_id: string; run_id: string; rest: Promise<ClientEvent[]> }> {
  const { thread_id } = await client.threads.create();
  let run_id = "";
  const onRunCreated = (run: { run_id: string }) => {
    run_id = run.run_id;
  };
  const stream = client.runs.stream(thread_id, "waiting", {
    input: {},
    streamMode: ["custom", "values"],
    onRunCreated,
  });
  const iterator = stream[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await iterator.next();
    if (done) throw new Error("The run ended before it began to wait.");
    if (value.event === "custom") break;
  }
  return { thread_id, run_id, rest: gather({ [Symbol.asyncIterator]: () => iterator }) };
}
