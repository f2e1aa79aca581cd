import type { Mutant } from "./mutants.ts";

const SOCKET = { file: "src/agent-server/http/thread-protocol.ts", suites: ["test/http/thread-socket.test.ts"] };
const STREAMS = {
  file: "src/agent-server/protocols/thread-protocol/thread-streams.ts",
  suites: ["test/http/thread-protocol.test.ts"],
};
const DEPLOYED = ["test/control/custom-auth.test.ts"];

export const THREAD_PROTOCOL_MUTANTS: readonly Mutant[] = [
  {
    ...SOCKET,
    name: "thread protocol: a subscription gets no earlier events",
    replace: ["after < this.#position", "after < -1"],
  },
  {
    ...SOCKET,
    name: "thread protocol: a subscription gets its events again with those of another",
    replace: ["(seen === undefined || event.seq > seen) &&", ""],
  },
  {
    ...STREAMS,
    name: "thread protocol: a client that connects again misses the end of a run",
    replace: ["for (const run of earlier) {", "for (const run of earlier.slice(MAX_QUEUED)) {"],
  },
  {
    ...STREAMS,
    name: "thread protocol: a client gets the end of a run before its own",
    replace: [".every(({ created_at }) => created_at < ended_at)", ".every(({ created_at }) => created_at > 0)"],
  },
  {
    name: "thread protocol: blocks of a message are open at the same time",
    file: "src/agent-server/graph-hosts/inside/message-blocks.ts",
    replace: ["events.push(...finishBlocks(open, mayFinish));", ""],
    suites: STREAMS.suites,
  },
  {
    name: "custom auth: keys without the scope admin are forwarded with the key of the instance",
    file: "src/control-plane/router/headers.ts",
    replace: [
      'sender.kind === "known" && custom_auth && !sender.is_admin',
      'sender.kind === "known" && custom_auth && !sender',
    ],
    suites: DEPLOYED,
  },
  {
    name: "custom auth: instances without it receive requests without a key",
    file: "src/control-plane/router/headers.ts",
    replace: ['sender.kind === "unknown" && custom_auth', 'sender.kind === "unknown"'],
    suites: ["test/control/router/access.test.ts", ...DEPLOYED],
  },
  {
    name: "custom auth: a key of the service beside another header is forwarded",
    file: "src/app/deployment-front.ts",
    replace: ["return first ?? (api_key && bearer ?", "return first ?? (api_key && !bearer ?"],
    suites: DEPLOYED,
  },
];
