/** A page that loads a UI component with the official client: `#api={url}&key={key}`. */
import { Client } from "@langchain/langgraph-sdk";
import { LoadExternalComponent } from "@langchain/langgraph-sdk/react-ui";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

const params = new URLSearchParams(location.hash.slice(1));
const client = new Client({ apiUrl: params.get("api"), apiKey: params.get("key") || null });
const message = { type: "ui", id: "1", name: "weather", props: { city: "Paris" }, metadata: {} };
const stream = { client, assistantId: "agent" };
createRoot(document.getElementById("root")).render(createElement(LoadExternalComponent, { stream, message }));
