import type { Log } from "../../platform/lib/log.ts";
import { forHost } from "../../platform/lib/unavailable.ts";
import type {
  FromHost,
  GraphHost,
  GraphSchemas,
  HistoryPage,
  HostRequest,
  HostSetup,
  Question,
  StagedUpdate,
  StartHost,
  StateSummary,
} from "./host.ts";

export interface ReaderOptions {
  startHost: StartHost;
  setup: () => HostSetup;
  /** Where the reader's graphs find their checkpoints. */
  onRequest(request: HostRequest): Promise<unknown>;
  /** An answer that takes longer is given up, and the host with it. */
  timeout_ms: number;
  log: Log;
}

/** A question that the graph could not answer. */
export class QuestionError extends Error {
  /** The class of the error within the graph. */
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The type of an answer: JSON text, except where the service itself works with it. */
type AnswerTo<Q extends Question> = Q extends { kind: "update" }
  ? StagedUpdate
  : Q extends { kind: "summary" }
    ? StateSummary
    : Q extends { kind: "schemas" }
      ? GraphSchemas
      : Q extends { kind: "subgraphs" }
        ? Record<string, GraphSchemas>
        : Q extends { kind: "history" }
          ? HistoryPage
          : string;

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

/** The graph host that answers questions about state and graphs. It is started with the first question. */
export class GraphReader {
  readonly #options: ReaderOptions;
  readonly #waiting = new Map<number, Waiting>();
  #host: GraphHost | undefined;
  #nextId = 1;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /**
   * @throws QuestionError when the graph failed to answer, or took too long
   */
  ask<Q extends Question>(question: Q): Promise<AnswerTo<Q>> {
    this.#host ??= this.#start();
    const id = this.#nextId++;
    const answer = Promise.withResolvers<unknown>();
    const timer = setTimeout(
      () => this.#giveUp(`It did not answer within ${this.#options.timeout_ms} ms.`),
      this.#options.timeout_ms,
    );
    this.#waiting.set(id, answer);
    this.#host.send({ type: "ask", id, question });
    return answer.promise.finally(() => clearTimeout(timer)) as Promise<AnswerTo<Q>>;
  }

  /** The next question starts a host that loads the graphs anew; those on their way are answered by the old one. */
  reload(): void {
    const old = this.#host;
    this.#host = undefined;
    setTimeout(() => void old?.terminate(), this.#options.timeout_ms).unref();
  }

  async stop(): Promise<void> {
    await this.#host?.terminate();
    this.#host = undefined;
  }

  #start(): GraphHost {
    const host = this.#options.startHost(this.#options.setup(), {
      onMessage: (message) => this.#receive(host, message),
      onExit: (reason) => this.#giveUp(`The graph host ended: ${reason}.`),
    });
    return host;
  }

  #receive(host: GraphHost, message: FromHost): void {
    if (message.type === "answer") {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error) waiting?.reject(new QuestionError(message.error.name, message.error.message));
      else waiting?.resolve(message.value);
    } else if (message.type === "log") {
      this.#options.log[message.level](JSON.parse(message.fields), message.message);
    } else if (message.type === "request") {
      const { id, request } = message;
      this.#options.onRequest(request).then(
        (value) => host.send({ type: "reply", id, value }),
        (error: unknown) => host.send({ type: "reply", id, error: forHost(error) }),
      );
    }
  }

  #giveUp(reason: string): void {
    this.#options.log.error({ reason }, "the graph host for reads was given up");
    void this.#host?.terminate();
    this.#host = undefined;
    for (const { reject } of this.#waiting.values()) reject(new QuestionError("GraphHostError", reason));
    this.#waiting.clear();
  }
}
