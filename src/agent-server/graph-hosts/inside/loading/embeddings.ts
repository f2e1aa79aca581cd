import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ProviderEmbeddings } from "../../host.ts";
import type { EmbedQuery } from "../../host-store.ts";
import { importModule, locate } from "./packages.ts";

/** What `store.index.embed` names: a function of texts, or an object with the methods of LangChain's embeddings. */
export type Embeddings =
  | ((texts: string[]) => unknown)
  | { embedDocuments(texts: string[]): unknown; embedQuery(text: string): unknown };

/** @throws Error unless the export is a function or has both methods */
export function asEmbeddings(value: unknown): Embeddings {
  const { embedDocuments, embedQuery } = (value ?? {}) as Record<string, unknown>;
  if (typeof value === "function" || (typeof embedDocuments === "function" && typeof embedQuery === "function"))
    return value as Embeddings;
  throw new Error(
    "the export must be a function that takes a list of texts, or an object with embedDocuments and embedQuery",
  );
}

/** @throws Error when the package is not installed in the project, or its class fails, for example without the provider's API key */
export async function createProviderEmbeddings(
  { package_name, export_name, model }: ProviderEmbeddings,
  project_dir: string,
): Promise<Embeddings> {
  const from = pathToFileURL(join(project_dir, "langgraph.json")).href;
  const { exports } = await importModule(locate(package_name, { from, format: "import" }));
  const Provider = exports[export_name] as (new (fields: { model: string }) => Embeddings) | undefined;
  if (!Provider)
    throw new Error(`${package_name} has no export "${export_name}": install another version of the package`);
  return asEmbeddings(new Provider({ model }));
}

/** Returns the normalized vectors of the texts, concatenated in the order of the texts. */
export async function embed(embeddings: Embeddings, { texts, is_query, dims }: EmbedQuery): Promise<Float32Array> {
  const vectors: unknown =
    typeof embeddings === "function"
      ? await embeddings(texts)
      : is_query
        ? await Promise.all(texts.map((text) => embeddings.embedQuery(text)))
        : await embeddings.embedDocuments(texts);
  if (!isList(vectors) || vectors.length !== texts.length)
    throw new Error(`the embedding function must return a list with one vector for each text (${texts.length})`);
  const packed = new Float32Array(texts.length * dims);
  for (const [n, vector] of vectors.entries()) {
    if (!isList(vector) || vector.length !== dims)
      throw new Error(`vector ${n} must be a list of ${dims} numbers (store.index.dims)`);
    const length = Math.hypot(...(vector as number[]));
    if (!Number.isFinite(length)) throw new Error(`vector ${n} contains a value that is not a finite number`);
    packed.set(length === 0 ? vector : Array.from(vector as ArrayLike<number>, (number) => number / length), n * dims);
  }
  return packed;
}

const isList = (
  value: unknown,
): value is ArrayLike<number> & Iterable<unknown> & { entries(): Iterable<[number, unknown]> } =>
  Array.isArray(value) || ArrayBuffer.isView(value);
