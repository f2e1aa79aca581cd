import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Answer, TestService } from "../../support/service.ts";
import { documented, experimentOf, type Upload } from "../experiment.ts";

/** Asked for in each test: the service is started after the tests are declared. */
export type GetService = () => TestService;

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Anything = any;

/** A text that no other test uses, to find one's own records by. */
export const unique = (): string => randomUUID();

/** Requests below `/api/v1`. */
export function apiOf(service: GetService) {
  const send = (method: string, path: string, body?: unknown): Promise<Answer> =>
    service().request(method, `/api/v1${path}`, body);
  const ok = async (method: string, path: string, body?: unknown): Promise<Anything> => {
    const answer = await send(method, path, body);
    const beginning = answer.text.slice(0, 1000);
    expect([answer.status, beginning]).toEqual([200, beginning]);
    return answer.body;
  };
  return {
    send,
    ok,
    get: (path: string) => ok("GET", path),
    upload: (body: unknown): Promise<{ dataset: Anything; experiment: Anything }> =>
      ok("POST", "/datasets/upload-experiment", body),
  };
}

/** An experiment of `n` rows of its own, without any scores unless they are given. */
export const plain = (n: number, more: Partial<Upload> = {}): Upload => ({
  ...experimentOf(
    n,
    () => [],
    {},
    () => randomUUID(),
  ),
  ...more,
});

export { documented };

/** A query string; lists are repeated keys. */
export function query(parameters: Record<string, string | number | boolean | string[]>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  return `?${search}`;
}
