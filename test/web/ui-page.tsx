import { Client } from "@langchain/langgraph-sdk";
import { LoadExternalComponent } from "@langchain/langgraph-sdk/react-ui";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

const params = new URLSearchParams(location.hash.slice(1));
const client = new Client({ apiUrl: params.get("api") ?? "", apiKey: params.get("key") || null });
const message = { type: "ui" as const, id: "1", name: "weather", props: { city: "Paris" }, metadata: {} };
const stream = { client, assistantId: "agent" } as never;
createRoot(document.getElementById("root") as HTMLElement).render(
  createElement(LoadExternalComponent, { stream, message }),
);
