import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { openBreakingProxy } from "./js/breaking-proxy.ts";
import { pythonEnv, runScenarios, type ScenarioLine } from "./python-env.ts";

/** The scenarios of python/scenarios.py; a test below fails when this list is not complete. */
const SCENARIOS = [
  "async: assistants are created, changed, searched and deleted",
  "async: a graph is drawn, and gives its schemas and subgraphs",
  "async: threads are created, changed, searched, copied and deleted",
  "async: runs are streamed in every mode that clients use",
  "async: subgraphs are streamed under their namespace, in both formats of the client",
  "async: runs are waited for, and a failed one is an exception",
  "async: runs are created, joined and listed",
  "async: a run is read again from the start, after an event, and in some modes",
  "async: runs are cancelled, and refused on a busy thread",
  "async: a run is undone, alone, among several, and by one that takes its place",
  "async: an interrupt is shown, and resumed with an answer",
  "async: states and their history are read and changed",
  "async: a run starts from an earlier checkpoint",
  "async: stateless runs are waited for, streamed and created in batches",
  "async: a thread is streamed run by run, each with its own output",
  "async: the messages of a thread are streamed in pieces, and an interrupt is answered",
  "async: a connection that breaks costs the reader of a run nothing",
  "sync: an assistant is created, found and deleted",
  "sync: runs are waited for, streamed, joined and listed",
  "sync: a run is read again from the start",
  "sync: an interrupt is resumed, and the states are read",
  "sync: a run is cancelled, and another refused meanwhile",
  "sync: stateless runs are created in batches",
  "sync: crons are created, searched, counted, changed and deleted",
  "sync: threads have a time to live and are pruned",
  "sync: a webhook is called when a run ends",
  "sync: items are stored, found, listed and deleted",
  "RemoteGraph: it streams its subgraphs into the graph of which it is a node",
  "RemoteGraph: it interrupts the graph of which it is a node",
  "RemoteGraph: it gets the response to its interrupt from the node that calls it",
];

const { python } = await pythonEnv();

describe.skipIf(!python).each(databases)("the official Python client against %s", (database) => {
  let service: TestService;
  let lines: ScenarioLine[];
  let complaints: string;
  let breaks: number;
  beforeAll(async () => {
    service = await startService({ inline: false, database, config: "test/graphs/compat/langgraph.json" });
    const url = await service.listen();
    const proxy = await openBreakingProxy(url, "id: 3\n\n");
    ({ lines, complaints } = await runScenarios(python as string, "scenarios.py", [url, proxy.url]));
    breaks = proxy.broken();
    await proxy.close();
  }, 150_000);
  afterAll(() => service.stop());

  it("passes all scenarios without warnings", () => {
    expect(complaints).toBe("");
    expect(breaks).toBe(1);
    expect(lines.map(({ scenario }) => scenario)).toEqual(SCENARIOS);
  });

  it.each(SCENARIOS)("%s", (name) => {
    expect(lines.find(({ scenario }) => scenario === name)).toEqual({ scenario: name, ok: true });
  });
});
