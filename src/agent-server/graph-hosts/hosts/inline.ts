import type { FromHost, GraphHost, HostListener, HostSetup, StartHost, ToHost } from "../host.ts";

/**
 * A host on the serving thread (`--inline`): breakpoints in nodes work in any debugger. A node that blocks
 * blocks everything, so this is for development only.
 */
export const inlineHosts: StartHost = (setup: HostSetup, listener: HostListener): GraphHost => {
  let gone = false;
  const receive = (messages: FromHost[]) => {
    if (gone) return;
    setImmediate(() => {
      for (const message of messages) listener.onMessage(message);
    });
  };
  // Loaded on demand: with worker threads the serving thread never loads LangGraph.
  const runtime = import("../inside/runtime.ts").then(({ startRuntime }) => startRuntime(setup, receive));
  return {
    // Plain data crosses as a copy, as it does to a thread.
    send: (message: ToHost) => {
      const copy = structuredClone(message);
      void runtime.then((host) => host.receive(copy));
    },
    async terminate() {
      gone = true;
    },
  };
};
