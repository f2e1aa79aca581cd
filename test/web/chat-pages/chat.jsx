/** A chat with one of the official hooks: `?hook=runs|threads&api={url}&assistant={id}`, and `#{thread_id}`, which the page sets. */
import { HumanMessage } from "@langchain/core/messages";
import { useStream as useRuns } from "@langchain/langgraph-sdk/react";
import { useMessageMetadata, useStream as useThread } from "@langchain/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

const { hook, api, assistant, key, transport } = Object.fromEntries(new URLSearchParams(location.search));

function useOptions() {
  const [threadId, setThreadId] = useState(location.hash.slice(1) || null);
  const onThreadId = (id) => {
    setThreadId(id);
    history.replaceState(null, "", `#${id}`);
  };
  const onCreated = () => {
    window.isRunKnown = true;
  };
  return { apiUrl: api, apiKey: key, assistantId: assistant, threadId, onThreadId, onCreated };
}

/** Lengths that the text of the newest message has had: more than one if it was shown in pieces. */
window.lengths = new Set();

const textOf = ({ content }) =>
  typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");

/** `useStream` of `@langchain/langgraph-sdk/react`, which streams runs. */
function RunChat() {
  const stream = useRuns({ ...useOptions(), reconnectOnMount: true, fetchStateHistory: true });
  const resume = (response) => stream.submit(undefined, { command: { resume: response } });
  const send = (content, forkFrom) =>
    stream.submit(
      { messages: [{ type: "human", content }] },
      { streamSubgraphs: true, streamResumable: true, ...(forkFrom && { checkpoint: forkFrom }) },
    );
  const Branch = ({ message }) => {
    const parent = stream.getMessagesMetadata(message)?.firstSeenState?.parent_checkpoint;
    return <AskAgain isReady={parent} ask={(content) => send(content, parent)} />;
  };
  return <Chat {...{ stream, resume, send, Branch }} />;
}

const Branch = ({ stream, message }) => {
  const parent = useMessageMetadata(stream, message.id)?.parentCheckpointId;
  return (
    <AskAgain
      isReady={parent}
      ask={(content) => stream.submit({ messages: [new HumanMessage(content)] }, { forkFrom: parent })}
    />
  );
};

/** `useStream` of `@langchain/react`, which speaks the thread protocol. */
function ThreadChat() {
  const stream = useThread({ ...useOptions(), transport });
  const send = (content) => stream.submit({ messages: [new HumanMessage(content)] });
  return <Chat {...{ stream, resume: stream.respond, send, Branch }} />;
}

function AskAgain({ isReady, ask }) {
  return (
    <button type="button" disabled={!isReady} onClick={() => ask("Where is my order 1043?")}>
      Ask again
    </button>
  );
}

function Chat({ stream, resume, send, Branch }) {
  const [text, setText] = useState("");
  const { messages, isLoading, interrupt, error, subgraphsByNode } = stream;
  window.lengths.add(messages.length > 0 ? textOf(messages.at(-1)).length : 0);
  return (
    <main>
      <ol>
        {messages.map((message) => (
          <li key={message.id} data-type={message.type}>
            {textOf(message)}
            {message.type === "human" && <Branch stream={stream} message={message} />}
          </li>
        ))}
      </ol>
      <p role="status">{isLoading ? "working" : "ready"}</p>
      {subgraphsByNode && <p data-subgraphs>{[...subgraphsByNode.keys()].join(",")}</p>}
      {error && <p role="alert">{String(error.message ?? error)}</p>}
      {interrupt?.value && (
        <button type="button" onClick={() => resume({ decision: "approve" })}>
          {interrupt.value.question}
        </button>
      )}
      <input aria-label="Message" value={text} onChange={({ target }) => setText(target.value)} />
      <button type="button" onClick={() => send(text)}>
        Send
      </button>
      <button type="button" onClick={() => stream.stop()}>
        Stop
      </button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(hook === "runs" ? <RunChat /> : <ThreadChat />);
