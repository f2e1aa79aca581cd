import type { AgentCard, SecurityScheme } from "@a2a-js/sdk";
import type { Assistant } from "../../contract/records.ts";

export interface CardOptions {
  assistant: Assistant;
  /** URL of the service. */
  base_url: string;
  sends_push: boolean;
  /** Whether the service requires a key or a JWT. With an authentication handler, the project decides what a request must contain. */
  requires_key: boolean;
}

const MODES = ["text/plain", "application/json"];

const SCHEMES: Record<string, SecurityScheme["scheme"]> = {
  api_key: {
    $case: "apiKeySecurityScheme",
    value: { location: "header", name: "X-Api-Key", description: "An API key." },
  },
  bearer: {
    $case: "httpAuthSecurityScheme",
    value: { scheme: "bearer", bearerFormat: "", description: "An API key or a JWT." },
  },
};

export function cardOf({ assistant, base_url, sends_push, requires_key }: CardOptions): AgentCard {
  const { assistant_id, graph_id, name, version } = assistant;
  const description = assistant.description || `The assistant ${name}.`;
  const shared = { url: `${base_url}/a2a/${assistant_id}`, protocolBinding: "JSONRPC", tenant: "" };
  const schemes = requires_key ? Object.entries(SCHEMES) : [];
  return {
    name,
    description,
    version: String(version),
    supportedInterfaces: [
      { ...shared, protocolVersion: "1.0" },
      { ...shared, protocolVersion: "0.3" },
    ],
    capabilities: { streaming: true, pushNotifications: sends_push, extendedAgentCard: true, extensions: [] },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: [
      {
        id: assistant_id,
        name,
        description,
        tags: [graph_id],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    securitySchemes: Object.fromEntries(schemes.map(([id, scheme]) => [id, { scheme }])),
    // Alternatives: one of the schemes is sufficient.
    securityRequirements: schemes.map(([id]) => ({ schemes: { [id]: { list: [] } } })),
    provider: undefined,
    signatures: [],
  };
}
