import { resolve } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import { readTtl } from "./ttl.ts";

const MAX_DIMS = 8_192;

/** Package and class of LangChain's embeddings, by the provider's name in `init_embeddings` of LangChain for Python. */
const PROVIDERS: Readonly<Record<string, readonly [package_name: string, export_name: string]>> = {
  azure_openai: ["@langchain/openai", "AzureOpenAIEmbeddings"],
  bedrock: ["@langchain/aws", "BedrockEmbeddings"],
  cohere: ["@langchain/cohere", "CohereEmbeddings"],
  google_genai: ["@langchain/google-genai", "GoogleGenerativeAIEmbeddings"],
  google_vertexai: ["@langchain/google-vertexai", "VertexAIEmbeddings"],
  mistralai: ["@langchain/mistralai", "MistralAIEmbeddings"],
  ollama: ["@langchain/ollama", "OllamaEmbeddings"],
  openai: ["@langchain/openai", "OpenAIEmbeddings"],
};

/** Reads `./file.ts:exportName` or `provider:model`. Returns undefined for anything else. */
function readEmbed(embed: unknown, project_dir: string) {
  const [, first, second = ""] = (typeof embed === "string" && /^(.+?):([^:/\\].*)$/.exec(embed)) || [];
  if (first === undefined) return undefined;
  if (/^(\.+|)\//.test(first))
    return /^[\w$]+$/.test(second) ? { file: resolve(project_dir, first), export_name: second } : undefined;
  const [package_name, export_name] = PROVIDERS[first] ?? [];
  return package_name && export_name ? { package_name, export_name, model: second } : undefined;
}

/**
 * @param field `store` of langgraph.json
 * @throws ConfigError
 */
export function readStore(field: unknown, project_dir: string, config_file: string) {
  const wrong = (name: string, remedy: string) => new ConfigError(`${config_file}: store${name} ${remedy}.`);
  const section = (value: unknown, name: string) => {
    if (value !== undefined && value !== null && !isObject(value)) throw wrong(name, "must be an object");
    return value ?? {};
  };
  const store = section(field, "");
  const { ttl, default_ms, sweep_interval_ms } = readTtl(store.ttl, "store.ttl", config_file);
  const readIndex = ({ embed, dims, fields = ["$"] }: JsonObject) => {
    const embeddings = readEmbed(embed, project_dir);
    if (!embeddings)
      throw wrong(
        ".index.embed",
        `must be "./file.ts:exportName" (a function that takes a list of texts, or an object with embedDocuments and embedQuery), or "provider:model" (with one of the providers ${Object.keys(PROVIDERS).join(", ")}), but is ${JSON.stringify(embed)}`,
      );
    if (!(Number.isInteger(dims) && (dims as number) >= 1 && (dims as number) <= MAX_DIMS))
      throw wrong(".index.dims", `must be the number of dimensions of the vectors, an integer from 1 to ${MAX_DIMS}`);
    if (!Array.isArray(fields) || !fields.every((path) => typeof path === "string" && path !== ""))
      throw wrong(".index.fields", 'must be a list of paths, such as ["title", "chapters[*].text"]');
    return {
      embed: embeddings,
      dims: dims as number,
      fields: fields as string[],
    };
  };
  const { refresh_on_read = true } = ttl;
  if (typeof refresh_on_read !== "boolean") throw wrong(".ttl.refresh_on_read", "must be true or false");
  return {
    index: store.index ? readIndex(section(store.index, ".index")) : undefined,
    ttl: { refresh_on_read, default_ms, sweep_interval_ms },
  };
}
