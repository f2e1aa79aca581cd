/** A chat of assistant-ui: `?adapter=langgraph|langchain&api={url}&assistant={id}`. Without its cloud, a reload starts a new thread. */
import { AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useLangChainInterruptState, useLangChainRespond, useStreamRuntime } from "@assistant-ui/react-langchain";
import {
  unstable_createLangGraphStream as createLangGraphStream,
  useLangGraphInterruptState,
  useLangGraphRuntime,
  useLangGraphSendCommand,
} from "@assistant-ui/react-langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { createRoot } from "react-dom/client";

const { adapter, api, assistant } = Object.fromEntries(new URLSearchParams(location.search));
const client = new Client({ apiUrl: api });

/** Streams runs with `client.runs.stream()`. */
function RunChat() {
  const runtime = useLangGraphRuntime({
    stream: createLangGraphStream({ client, assistantId: assistant }),
    create: async () => ({ externalId: (await client.threads.create()).thread_id }),
  });
  return <Chat runtime={runtime} Interrupt={RunInterrupt} />;
}

function RunInterrupt() {
  const sendCommand = useLangGraphSendCommand();
  return <Question of={useLangGraphInterruptState()} respond={(resume) => sendCommand({ resume })} />;
}

/** Uses the thread protocol with `useStream` of `@langchain/react`. */
function ThreadChat() {
  const runtime = useStreamRuntime({ apiUrl: api, assistantId: assistant });
  return <Chat runtime={runtime} Interrupt={ThreadInterrupt} />;
}

function ThreadInterrupt() {
  return <Question of={useLangChainInterruptState()} respond={useLangChainRespond()} />;
}

function Question({ of: interrupt, respond }) {
  if (!interrupt) return null;
  return (
    <button type="button" onClick={() => respond({ decision: "approve" })}>
      {interrupt.value.question}
    </button>
  );
}

const Message = () => (
  <li>
    <MessagePrimitive.Parts components={{ Text: ({ text }) => <span>{text}</span> }} />
  </li>
);

function Chat({ runtime, Interrupt }) {
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ol>
          <ThreadPrimitive.Messages components={{ Message }} />
        </ol>
        <Interrupt />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(adapter === "langgraph" ? <RunChat /> : <ThreadChat />);
