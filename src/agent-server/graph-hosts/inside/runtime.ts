import { unlessAborted } from "../../../platform/lib/unless-aborted.ts";
import type { AskForToken } from "../author/token-question.ts";
import type { FromHost, HostSetup, ToHost, TokenAnswer } from "../host.ts";
import { createCheckpointer } from "./checkpointer.ts";
import { ServiceConnection } from "./connection.ts";
import { executeRun } from "./execute.ts";
import { inContext, installGlobals } from "./loading/globals.ts";
import { loadGraphs } from "./loading/load.ts";
import { answerQuestion } from "./questions.ts";
import { RunningInHost } from "./running-in-host.ts";

export interface Runtime {
  receive(message: ToHost): void;
}

/** Starts the inside of a graph host: loads the graphs, then executes runs and answers questions as they come. */
export function startRuntime(setup: HostSetup, send: (messages: FromHost[]) => void): Runtime {
  const connection = new ServiceConnection(send);
  installGlobals();
  const loading = inContext({ connection }, () =>
    loadGraphs(setup, (library) => createCheckpointer(library, connection)),
  );
  const runs = new Map<string, RunningInHost>();
  void loading.then((graphs) =>
    connection.post({ type: "loaded", failures: graphs.failures, warnings: graphs.warnings }),
  );

  async function start({ order, head, begun }: Extract<ToHost, { type: "start" }>, run: RunningInHost): Promise<void> {
    const graphs = await loading;
    connection.post({ type: "started", run_id: order.run_id, epoch: order.epoch });
    // It is said by then. A graph that blocks the thread before its turn ends, or kills it, would seem not to have started, and
    // would be given to the next host, and the next.
    await new Promise(setImmediate);
    const emit = (event: string, data: string) => connection.emit(order, event, data);
    const askForToken: AskForToken = (wish) =>
      unlessAborted(run.signal, connection.request(order, { ...wish, op: "token" }) as Promise<TokenAnswer>);
    const outcome = await inContext({ connection, run: { order, signal: run.signal } }, () =>
      executeRun({ order, head, begun, graphs, run, emit, askForToken }),
    );
    runs.delete(keyOf(order));
    connection.post({ type: "done", run_id: order.run_id, epoch: order.epoch, outcome });
  }

  return {
    receive(message) {
      switch (message.type) {
        case "start": {
          const run = new RunningInHost();
          runs.set(keyOf(message.order), run);
          // In the next turn: when the thread was blocked, an abort that lies behind this message comes first.
          setImmediate(() => void start(message, run));
          break;
        }
        case "abort":
          runs.get(keyOf(message))?.abort(message.reason);
          break;
        case "drain":
          runs.get(keyOf(message))?.drain();
          break;
        case "ask":
          void loading.then(async (graphs) =>
            connection.post(await inContext({ connection }, () => answerQuestion(message, graphs))),
          );
          break;
        case "reply":
          connection.onReply(message);
          break;
        case "ping":
          connection.post({ type: "pong", id: message.id });
      }
    },
  };
}

const keyOf = ({ run_id, epoch }: { run_id: string; epoch: number }) => `${run_id} ${epoch}`;
