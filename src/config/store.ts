import { resolve } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import { readTtl } from "./ttl.ts";

const MAX_DIMS = 8_192;

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
    const [, file, export_name] = (typeof embed === "string" && /^(\..+|\/.+):([\w$]+)$/.exec(embed)) || [];
    if (file === undefined || export_name === undefined)
      throw wrong(
        ".index.embed",
        `must have the form "./file.ts:exportName" and refer to a function that takes a list of texts, or to an object with embedDocuments and embedQuery, but is ${JSON.stringify(embed)}. Provider names are not supported: create the provider's embeddings object in a file and export it`,
      );
    if (!(Number.isInteger(dims) && (dims as number) >= 1 && (dims as number) <= MAX_DIMS))
      throw wrong(".index.dims", `must be the number of dimensions of the vectors, an integer from 1 to ${MAX_DIMS}`);
    if (!Array.isArray(fields) || !fields.every((path) => typeof path === "string" && path !== ""))
      throw wrong(".index.fields", 'must be a list of paths, such as ["title", "chapters[*].text"]');
    return {
      embed: { file: resolve(project_dir, file), export_name },
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
