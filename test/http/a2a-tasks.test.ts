import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { A2aCaller, CONFIG, textsIn, userMessage } from "./a2a.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("the A2A endpoint on %s", (database) => {
  let api: Scenario;
  let agent: A2aCaller;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, CONFIG);
    agent = new A2aCaller(api);
  });
  afterAll(() => api.stop());

  /** A task that waits for its door; the answer contains its token "yes". */
  async function waitingTask(contextId?: string) {
    const door = api.newDoor();
    const configuration = { returnImmediately: true };
    const task = await agent.send("waits", userMessage(door.path, { contextId }), configuration);
    await agent.reaches("waits", task.id, "WORKING");
    await until("it waits", async () => (await api.state(task.contextId)).next?.includes("wait"));
    return { ...task, door };
  }
  const code = async (graph: string, method: string, params: unknown) => {
    const { error } = await agent.call(graph, method, params);
    return error?.code;
  };

  describe("runs a message", () => {
    it("on a new thread, and returns its answer and history", async () => {
      const message = userMessage("hi");
      const task = await agent.send("echo", message);
      expect(task).toMatchObject({
        status: { state: "TASK_STATE_COMPLETED", timestamp: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) },
        artifacts: [{ artifactId: expect.any(String), parts: [{ text: "You said: hi", mediaType: "text/plain" }] }],
        history: [
          { messageId: message.messageId, role: "ROLE_USER", parts: [{ text: "hi" }] },
          { role: "ROLE_AGENT", parts: [{ text: "You said: hi" }], contextId: task.contextId },
        ],
      });
      const run = await api.run({ thread_id: task.contextId, run_id: task.id });
      expect(run).toMatchObject({ status: "success", multitask_strategy: "enqueue" });
      expect(await agent.get("echo", task.id)).toEqual(task);
      expect(await agent.get("echo", task.id.toUpperCase())).toEqual(task);
    });

    it("with parts of all kinds", async () => {
      const parts = [
        { text: "see" },
        { data: { a: [1] } },
        { url: "https://x.example/a.png", mediaType: "image/png" },
        { raw: "AAAA", mediaType: "image/png" },
        { raw: "AAAA" },
      ];
      const { contextId, history } = await agent.send("echo", { ...userMessage(""), parts });
      const [stored] = (await api.thread(contextId)).values.messages;
      const image = (url: string) => ({ type: "image_url", image_url: { url } });
      expect(stored).toMatchObject({ type: "human" });
      expect(stored.content).toEqual([
        { type: "text", text: "see" },
        { type: "text", text: '{"a":[1]}' },
        image("https://x.example/a.png"),
        image("data:image/png;base64,AAAA"),
        image("data:application/octet-stream;base64,AAAA"),
      ]);
      expect(history[0].parts.slice(2)).toEqual([
        { url: "https://x.example/a.png" },
        { raw: "AAAA", mediaType: "image/png" },
        { raw: "AAAA", mediaType: "application/octet-stream" },
      ]);
    });

    it("with its metadata, as a run of the API", async () => {
      const { result } = await agent.call("echo", "SendMessage", {
        message: userMessage("hi"),
        metadata: { team: "blue" },
      });
      const { id, contextId } = result.task;
      expect((await api.run({ thread_id: contextId, run_id: id })).metadata).toMatchObject({ team: "blue" });
      expect((await api.thread(contextId)).metadata).toMatchObject({ team: "blue", graph_id: "echo" });
    });

    it("in a context, which is a thread", async () => {
      const { contextId } = await agent.send("echo", userMessage("one"));
      const second = await agent.send("echo", userMessage("two", { contextId }), { historyLength: 3 });
      expect(second.contextId).toBe(contextId);
      expect(second.history.map(textsIn)).toEqual(["You said: one", "two", "You said: two"]);
      expect(textsIn(second.artifacts[0])).toBe("You said: two");
      await api.wait(contextId, { assistant_id: "echo", input: { messages: [{ role: "user", content: "three" }] } });
      const { tasks } = await agent.list("echo", { contextId });
      expect(tasks).toHaveLength(3);
    });

    it.each(["a name", crypto.randomUUID().toUpperCase()])(
      "in the context %s, whose ID stays as it is",
      async (contextId) => {
        const first = await agent.send("echo", userMessage("one", { contextId }));
        const second = await agent.send("echo", userMessage("two", { contextId }));
        expect([first.contextId, second.contextId]).toEqual([contextId, contextId]);
        expect(second.history.map(textsIn)).toEqual(["one", "You said: one", "two", "You said: two"]);
        expect((await agent.list("echo", { contextId })).tasks.map(({ id }) => id)).toEqual([second.id, first.id]);
      },
    );

    it.each([
      [0, undefined],
      [1, ["You said: 5"]],
      [10, ["1", "2", "3", "4", "5"].flatMap((text) => [text, `You said: ${text}`])],
      [undefined, ["1", "2", "3", "4", "5"].flatMap((text) => [text, `You said: ${text}`])],
    ])("with a history of at most %s messages", async (historyLength, texts) => {
      const contextId = crypto.randomUUID();
      for (const text of ["0", "1", "2", "3", "4"]) await agent.send("echo", userMessage(text, { contextId }));
      const task = await agent.send("echo", userMessage("5", { contextId }), { historyLength });
      expect(task.history?.map(textsIn)).toEqual(texts);
      const { result } = await agent.call("echo", "GetTask", { id: task.id, historyLength });
      expect(result.history?.map(textsIn)).toEqual(texts);
    });

    it("without waiting, if the client wants that", async () => {
      const door = api.newDoor();
      const task = await agent.send("waits", userMessage(door.path), { returnImmediately: true });
      expect(task.status.state).toBe("TASK_STATE_SUBMITTED");
      await agent.reaches("waits", task.id, "WORKING");
      door.open();
      await agent.reaches("waits", task.id, "COMPLETED");
      const ended = await agent.get("waits", task.id);
      expect(ended.artifacts.map(textsIn)).toEqual(["The door is open."]);
    });

    it("that queues behind the task before it", async () => {
      const first = await waitingTask();
      const second = await agent.send("waits", userMessage(first.door.path, { contextId: first.contextId }), {
        returnImmediately: true,
      });
      expect((await agent.get("waits", second.id)).status.state).toBe("TASK_STATE_SUBMITTED");
      first.door.open();
      await agent.reaches("waits", second.id, "COMPLETED");
    });

    it("that fails, adds nothing, or has a long answer", async () => {
      const failed = await agent.send("fails", userMessage("hi"));
      expect(failed.status.state).toBe("TASK_STATE_FAILED");
      expect(textsIn(failed.status.message)).toBe("RangeError: There is no such color.");
      const context = { contextId: (await agent.send("echo", userMessage("hi"))).contextId };
      const silent = await agent.send("silent", userMessage("hi", context));
      expect([silent.status.state, silent.artifacts]).toEqual(["TASK_STATE_COMPLETED", undefined]);
      const long = await agent.send("long", userMessage("hi"), { historyLength: 1 });
      expect(textsIn(long.artifacts[0])).toBe("x".repeat(400_000));
      expect(long.history).toHaveLength(1);
    });
  });

  describe("streams a message", () => {
    it("as a task, its states and the tokens of its answer", async () => {
      const updates = await agent.stream("talk", userMessage("hi"));
      const { task } = updates[0];
      const ids = { taskId: task.id, contextId: task.contextId };
      expect(task.status.state).toBe("TASK_STATE_SUBMITTED");
      expect(updates[1].statusUpdate).toMatchObject({ ...ids, status: { state: "TASK_STATE_WORKING" } });
      const artifacts = updates.slice(2, -1).map(({ artifactUpdate }) => artifactUpdate);
      expect(artifacts.map(({ artifact, append, lastChunk }) => [textsIn(artifact), append, lastChunk])).toEqual([
        ["y", undefined, undefined],
        ["e", true, undefined],
        ["s", true, undefined],
        ["", true, true],
      ]);
      expect(updates.at(-1).statusUpdate).toMatchObject({ ...ids, status: { state: "TASK_STATE_COMPLETED" } });
      const { artifacts: whole } = await agent.get("talk", task.id);
      expect(whole).toMatchObject([{ artifactId: artifacts[0].artifact.artifactId, parts: [{ text: "yes" }] }]);
    });

    it("with each message as an artifact, including those of nodes and of subgraphs", async () => {
      const updates = await agent.stream("everything", userMessage("Weather?"));
      expect(agent.artifactsIn(updates)).toEqual({
        "ai-1": "Looking",
        "ai-3": "It is sunny.",
        written: "A message that no model streamed.",
        "ai-5": "It is sunny.",
      });
      const last = updates.filter(({ artifactUpdate }) => artifactUpdate?.lastChunk);
      expect(last.map(({ artifactUpdate }) => artifactUpdate.artifact.artifactId).sort()).toEqual([
        ...["ai-1", "ai-3", "ai-5", "written"],
      ]);
    });

    it("that continues without its reader, and that others can read from the start", async () => {
      const door = api.newDoor();
      const stream = await agent.open("waits", "SendStreamingMessage", { message: userMessage(door.path) });
      const [{ task }] = await stream.until((updates) => updates.some(({ artifactUpdate }) => artifactUpdate));
      await stream.hangUp();
      const others = await Promise.all([1, 2].map(() => agent.open("waits", "SubscribeToTask", { id: task.id })));
      for (const other of others) {
        const [first] = await other.until(
          (updates) => updates.filter(({ artifactUpdate }) => artifactUpdate).length === 3,
        );
        expect(first.task).toMatchObject({ id: task.id, status: { state: "TASK_STATE_WORKING" } });
      }
      door.open();
      const [one, two] = await Promise.all(others.map((other) => other.rest()));
      expect(Object.values(agent.artifactsIn(one as Wire[]))).toEqual(["yes", "The door is open."]);
      expect(one?.at(-1).statusUpdate.status.state).toBe("TASK_STATE_COMPLETED");
      expect(two).toEqual(one);
      expect(await code("waits", "SubscribeToTask", { id: task.id })).toBe(-32004);
    });

    it("to its end, if it fails, is cancelled, paused or deleted", async () => {
      const failed = await agent.stream("fails", userMessage("hi"));
      expect(textsIn(failed.at(-1).statusUpdate.status.message)).toContain("no such color");
      const paused = await agent.stream("ask", userMessage("hi"));
      expect(paused.at(-1).statusUpdate.status).toMatchObject({
        state: "TASK_STATE_INPUT_REQUIRED",
        message: { parts: [{ data: { question: "Which order?" } }] },
      });
      const [{ task }, last] = await agent.subscribe("ask", paused[0].task.id);
      expect([task.status.state, last.statusUpdate.status.state]).toEqual(Array(2).fill("TASK_STATE_INPUT_REQUIRED"));
      for (const end of ["cancel", "rollback", "delete"] as const) {
        const { id: run_id, contextId: thread_id } = await waitingTask();
        const stream = await agent.open("waits", "SubscribeToTask", { id: run_id });
        await stream.until((updates) => updates.length > 1);
        if (end === "cancel") await api.cancel({ thread_id, run_id });
        else if (end === "rollback") await api.cancel({ thread_id, run_id }, "?wait=1&action=rollback");
        else await api.send("DELETE", `/threads/${thread_id}`);
        expect([end, (await stream.rest()).at(-1).statusUpdate.status.state]).toEqual([end, "TASK_STATE_CANCELED"]);
      }
    });
  });

  describe("asks for input", () => {
    it("and continues the task with answers: JSON text, an object, a text", async () => {
      const asked = await agent.send("ask", userMessage("hi"));
      const [part] = asked.status.message.parts;
      expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      expect(part).toMatchObject({
        data: { question: "Which order?" },
        metadata: { interrupt_id: expect.any(String) },
      });
      const { id: taskId, contextId } = asked;
      const second = await agent.send("ask", userMessage('{"order":7}', { taskId }));
      expect(second).toMatchObject({ contextId, status: { state: "TASK_STATE_INPUT_REQUIRED" } });
      expect(textsIn(second.status.message)).toBe("Why?");
      expect(second.id).not.toBe(taskId);
      expect((await agent.get("ask", taskId)).status.state).toBe("TASK_STATE_COMPLETED");
      const third = await agent.send("ask", userMessage("because", { taskId: second.id, contextId }));
      expect(third.artifacts.map(textsIn)).toEqual(['[{"order":7},"because"]']);
      expect(third.history.map(textsIn)).toEqual(["hi", '[{"order":7},"because"]']);
    });

    it("of a data part, and of several answers by their IDs", async () => {
      const { id: taskId } = await agent.send("ask", userMessage("hi"));
      const answer = { ...userMessage(""), taskId, parts: [{ data: [1, null] }] };
      const { id } = await agent.send("ask", answer);
      const ended = await agent.send("ask", { ...userMessage(""), taskId: id, parts: [{ text: "a" }, { text: "b" }] });
      expect(ended.artifacts.map(textsIn)).toEqual(['[[1,null],"a\\nb"]']);
      const both = await agent.send("both", userMessage("hi"));
      expect(both.status.message.parts.map(({ text }: Wire) => text)).toEqual(["Left?", "Right?"]);
      const [left, right] = both.status.message.parts.map(({ metadata }: Wire) => metadata.interrupt_id);
      const refused = await agent.call("both", "SendMessage", { message: userMessage("x", { taskId: both.id }) });
      expect([refused.error?.code, refused.error?.message]).toEqual([-32602, expect.stringContaining(left)]);
      const data = { [left]: "L", [right]: { r: 1 } };
      const done = await agent.send("both", { ...userMessage(""), taskId: both.id, parts: [{ data }] });
      expect(done.artifacts.map(textsIn)).toEqual(['["L",{"r":1}]']);
    });

    it("that an answer cannot consist of", async () => {
      const { id: taskId } = await agent.send("ask", userMessage("hi"));
      for (const parts of [[{ raw: "AAAA" }], [{ text: "a" }, { data: 1 }], [{ url: "https://x.example" }]]) {
        const message = { ...userMessage(""), taskId, parts };
        expect(await code("ask", "SendMessage", { message })).toBe(-32602);
      }
      expect((await agent.get("ask", taskId)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    });

    it("and gets one answer at a time", async () => {
      const door = api.newDoor();
      const { id: taskId, contextId } = await agent.send("ask_door", userMessage("hi"));
      let isRefused = false;
      const answer = async () => {
        const { result, error } = await agent.call("ask_door", "SendMessage", {
          message: userMessage(door.path, { taskId }),
        });
        isRefused ||= error !== undefined;
        return result?.task.status.state ?? error?.code;
      };
      const answers = Promise.all([answer(), answer()]);
      const runs = async (): Promise<Wire[]> => api.get(`/threads/${contextId}/runs`);
      await until("both are refused or accepted", async () => isRefused || (await runs()).length === 3);
      door.open();
      const states = await answers;
      expect(states).toContain("TASK_STATE_COMPLETED");
      // The second answer is refused at once, or its run fails because the question has an answer.
      expect(states.filter((state) => state === "TASK_STATE_FAILED" || state === -32004)).toHaveLength(1);
    });

    it("at a breakpoint, from which any message continues", async () => {
      const paused = await agent.send("breaks", userMessage("hi"));
      expect(textsIn(paused.status.message)).toContain("paused at a breakpoint");
      const ended = await agent.send("breaks", userMessage("go on", { taskId: paused.id }));
      expect([ended.status.state, ended.artifacts.map(textsIn)]).toEqual(["TASK_STATE_COMPLETED", ["second"]]);
      expect(ended.history.map(textsIn)).toEqual(["hi", "first", "second"]);
    });

    it("no more once a task is working or has ended, or with the ID of another context or assistant", async () => {
      const working = await waitingTask();
      const reply = (graph: string, more: object) => code(graph, "SendMessage", { message: userMessage("x", more) });
      expect(await reply("waits", { taskId: working.id })).toBe(-32004);
      working.door.open();
      await agent.reaches("waits", working.id, "COMPLETED");
      expect(await reply("waits", { taskId: working.id })).toBe(-32004);
      const { id: taskId, contextId } = await agent.send("ask", userMessage("hi"));
      expect(await reply("ask", { taskId, contextId: crypto.randomUUID() })).toBe(-32602);
      expect(await reply("echo", { taskId })).toBe(-32001);
      expect(await code("echo", "GetTask", { id: taskId })).toBe(-32001);
      const updated = await agent.send("ask", userMessage("hi"));
      await api.post(`/threads/${updated.contextId}/state`, { values: { messages: [] }, as_node: "answer" });
      expect(await reply("ask", { taskId: updated.id })).toBe(-32004);
      // The answer of another client.
      await api.wait(contextId, { assistant_id: "ask", command: { resume: "x" } });
      expect(await reply("ask", { taskId })).toBe(-32004);
    });
  });

  describe("cancels", () => {
    it.each(["CancelTask", "tasks/cancel"])("a task that works or is submitted, with %s", async (method) => {
      const working = await waitingTask();
      const configuration = { returnImmediately: true };
      const { contextId } = working;
      const queued = await agent.send("waits", userMessage("never", { contextId }), configuration);
      for (const { id } of [queued, working]) {
        const { result } = await agent.call("waits", method, { id });
        expect(result).toMatchObject({ id, status: { state: expect.stringMatching(/^(TASK_STATE_)?canceled$/i) } });
      }
      expect((await api.run({ thread_id: contextId, run_id: working.id })).status).toBe("interrupted");
    });

    it("no task that has ended or is paused, and shows the reason of others", async () => {
      const { id } = await agent.send("echo", userMessage("hi"));
      expect(await code("echo", "CancelTask", { id })).toBe(-32002);
      const paused = await agent.send("ask", userMessage("hi"));
      expect(await code("ask", "CancelTask", { id: paused.id })).toBe(-32002);
      const { id: run_id, contextId: thread_id } = await waitingTask();
      await api.cancel({ thread_id, run_id }, "?wait=1&reason=taken:by%20somebody");
      const cancelled = await agent.get("waits", run_id);
      expect([cancelled.status.state, textsIn(cancelled.status.message)]).toEqual([
        ...["TASK_STATE_CANCELED", "taken:by somebody"],
      ]);
    });
  });

  describe("lists tasks", () => {
    it("of the assistant, the last changed first, in pages", async () => {
      const { assistant_id } = await api.post("/assistants", { graph_id: "echo", name: "listed" });
      const ids: string[] = [];
      for (const text of ["1", "2", "3", "4", "5"]) ids.push((await agent.send(assistant_id, userMessage(text))).id);
      await api.post("/runs/wait", { assistant_id, input: { messages: "stateless" } });
      const listed: string[] = [];
      let pageToken = "";
      do {
        const page = await agent.list(assistant_id, { pageSize: 2, pageToken });
        expect(page).toMatchObject({ totalSize: 5, pageSize: 2 });
        listed.push(...page.tasks.map(({ id }) => id));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      expect(listed).toEqual(ids.toReversed());
      expect((await agent.list("talk", {})).tasks.map(({ id }) => id)).not.toContain(ids[0]);
    });

    it("by state and time, and with their artifacts and history on request", async () => {
      const { assistant_id } = await api.post("/assistants", { graph_id: "ask", name: "listed" });
      const first = await agent.send(assistant_id, userMessage("hi"));
      const second = await agent.send(assistant_id, userMessage("1", { taskId: first.id }));
      const third = await agent.send(assistant_id, userMessage("2", { taskId: second.id }));
      const by = async (query: object) => (await agent.list(assistant_id, query)).tasks.map(({ id }) => id);
      expect(await by({ status: "TASK_STATE_COMPLETED" })).toEqual([third.id, second.id, first.id]);
      expect(await by({ status: "TASK_STATE_INPUT_REQUIRED" })).toEqual([]);
      expect(await by({ status: "TASK_STATE_REJECTED" })).toEqual([]);
      expect(await by({ statusTimestampAfter: second.status.timestamp })).toEqual([third.id, second.id]);
      const { tasks } = await agent.list(assistant_id, { includeArtifacts: true, historyLength: 1 });
      expect(tasks.map(({ artifacts, history }) => [artifacts.map(textsIn), history.map(textsIn)])).toEqual([
        [["[1,2]"], ["[1,2]"]],
        [[], ["hi"]],
        [[], ["hi"]],
      ]);
      const [plain] = (await agent.list(assistant_id, {})).tasks;
      expect(Object.keys(plain as object).sort()).toEqual(["contextId", "id", "status"]);
    });

    it("in each state", async () => {
      const { assistant_id } = await api.post("/assistants", { graph_id: "waits", name: "listed" });
      const door = api.newDoor();
      const send = (contextId?: string) =>
        agent.send(assistant_id, userMessage(door.path, { contextId }), { returnImmediately: true });
      const { id: working, contextId } = await send();
      await agent.reaches(assistant_id, working, "WORKING");
      const { id: submitted } = await send(contextId);
      const { id: canceled } = await send(contextId);
      await agent.call(assistant_id, "CancelTask", { id: canceled });
      for (const [state, id] of Object.entries({ WORKING: working, SUBMITTED: submitted, CANCELED: canceled }))
        expect(
          (await agent.list(assistant_id, { status: `TASK_STATE_${state}` })).tasks.map((task) => task.id),
        ).toEqual([id]);
      door.open();
      await agent.reaches(assistant_id, submitted, "COMPLETED");
    });
  });
});

it("a task whose graph host exits closes the message of the first attempt, and sends that of the second from the start", async () => {
  const api = await Scenario.start("sqlite", {}, { ...CONFIG, inline: false });
  try {
    const agent = new A2aCaller(api);
    const door = api.newDoor();
    const stream = await agent.open("dies", "SendStreamingMessage", { message: userMessage(door.path) });
    await stream.until((updates) => Object.values(agent.artifactsIn(updates)).includes("It is sunny."));
    door.open();
    const artifacts = (await stream.rest()).flatMap(({ artifactUpdate }) => artifactUpdate ?? []);
    const chunks = [
      ["It is ", undefined],
      ["sunny", true],
      [".", true],
    ];
    expect(artifacts.map(({ artifact, append }) => [textsIn(artifact), append])).toEqual([
      ...chunks,
      ["", true],
      ...chunks,
      ["", true],
    ]);
  } finally {
    await api.stop();
  }
});
