import type { OpenAPIHono } from "@hono/zod-openapi";
import { html, raw } from "hono/html";
import type { App } from "./route.ts";

type ApiDocument = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

interface Operation {
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: { name: string; in: string; required?: boolean; description?: string }[];
  requestBody?: { content?: Record<string, { schema?: Schema }> };
  responses?: Record<string, { description?: string }>;
}

/** An OpenAPI document with the paths of its page and of its JSON, relative to the root of the service. */
export interface Documented {
  title: string;
  page: string;
  json: string;
  read(): ApiDocument;
}

/** Serves the API reference, with a page for each document that links to the others. */
export function serveDocs(app: App, documents: readonly Documented[]): void {
  for (const { page, json, read } of documents) {
    const root = "../".repeat(page.split("/").length - 1);
    app.get(`/${page}`, (context) => {
      const links = documents.map((other) => html`<a href="${root}${other.page}">${other.title}</a> `);
      return context.html(docsPage(read(), `${root}${json}`, links));
    });
  }
}

/** Renders an OpenAPI document as a page without scripts or external files. */
function docsPage(document: ApiDocument, json_url: string, links: unknown[]) {
  const { info, tags = [], paths = {} } = document;
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...(operation as Operation) })),
  );
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title}</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main>
${links.length > 1 ? html`<nav>${links}</nav>` : ""}
<h1>${info.title} <small>${info.version}</small></h1>
<p>${text(info.description)} <a href="${json_url}">openapi.json</a></p>
<nav>${tags.map((tag) => html`<a href="#${idOf(tag.name)}">${tag.name}</a> `)}</nav>
${tags.map(
  (tag) => html`<h2 id="${idOf(tag.name)}">${tag.name}</h2><p>${text(tag.description)}</p>
${operations.filter((operation) => operation.tags?.includes(tag.name)).map((operation) => operationPart(operation, schemas))}`,
)}
</main>
</body>
</html>`;
}

const idOf = (name: string) => name.toLowerCase().replaceAll(" ", "-");

/** Formats text in backticks as code. */
const text = (sentence = "") =>
  sentence.split("`").map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));

function operationPart(operation: Operation & { method: string; path: string }, schemas: Record<string, Schema>) {
  const { method, path, summary, description, parameters = [], requestBody, responses = {} } = operation;
  const body = requestBody?.content?.["application/json"]?.schema;
  return html`<details><summary><b class="${method}">${method.toUpperCase()}</b><code>${path}</code><span>${summary}</span></summary>
${description ? html`<p>${text(description)}</p>` : ""}
${parameters.length > 0 ? html`<h3>Parameters</h3><dl>${parameters.map((p) => row(p.name, `${p.in}${p.required ? ", required" : ""}`, p.description))}</dl>` : ""}
${body ? html`<h3>Body</h3><dl>${bodyRows(body, schemas)}</dl>` : ""}
<h3>Responses</h3><dl>${Object.entries(responses).map(([status, response]) => row(status, "", response.description))}</dl></details>`;
}

const row = (name: string, kind: string, description = "") =>
  html`<dt><code>${name}</code> <small>${kind}</small></dt><dd>${text(description)}</dd>`;

function bodyRows(body: Schema, schemas: Record<string, Schema>) {
  const schema = resolve(body, schemas);
  if (schema.items) return bodyRows(schema.items, schemas);
  if (!schema.properties) return row("", typeOf(schema, schemas), schema.description);
  return Object.entries(schema.properties).map(([name, given]) => {
    const field = resolve(given, schemas);
    const isDefault = field.default === undefined ? "" : `, default ${JSON.stringify(field.default)}`;
    const isRequired = schema.required?.includes(name) && field.default === undefined ? ", required" : "";
    return row(name, `${typeOf(field, schemas)}${isRequired}${isDefault}`, given.description ?? field.description);
  });
}

const resolve = (schema: Schema, schemas: Record<string, Schema>): Schema =>
  schema.$ref ? { ...schemas[schema.$ref.split("/").at(-1) as string], ...schema } : schema;

function typeOf(schema: Schema, schemas: Record<string, Schema>): string {
  const { type, enum: values, items, anyOf, oneOf } = resolve(schema, schemas);
  if (values) return values.map(String).join(" | ");
  const choices = anyOf ?? oneOf;
  if (choices) return [...new Set(choices.map((choice) => typeOf(choice, schemas)))].join(" | ");
  if (type === "array" && items) return `list of ${typeOf(items, schemas)}`;
  return [type ?? "any"].flat().join(" | ");
}

const STYLE = `
:root { color-scheme: light dark; background: Canvas; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 small { font-weight: normal; opacity: .6; font-size: 1rem; }
h2 { margin: 2rem 0 0; }
details { border-top: 1px solid color-mix(in srgb, currentColor 18%, transparent); padding: .4rem 0; }
nav { display: flex; flex-wrap: wrap; gap: 0 1rem; }
h3 { margin: .6rem 0 0 1rem; font-size: .85rem; opacity: .7; }
summary { cursor: pointer; overflow-wrap: anywhere; padding-left: 1rem; text-indent: -1rem; }
summary span { opacity: .75; margin-left: .8rem; }
details p { margin: .5rem 1rem; }
b { display: inline-block; min-width: 4.2rem; font-size: .8rem; text-indent: 0; }
.get { color: #075; } .post { color: #26c; } .delete { color: #c33; } .patch { color: #a60; }
@media (prefers-color-scheme: dark) { .get { color: #3d9; } .post { color: #7af; } .delete { color: #f77; } .patch { color: #fb5; } }
dl { display: grid; grid-template-columns: minmax(0, max-content) minmax(0, 1fr); gap: .1rem 1rem; margin: .2rem 0 .5rem 1rem; overflow-wrap: anywhere; }
dt { max-width: 22rem; }
dd { margin: 0; }
@media (max-width: 40rem) { dl { grid-template-columns: minmax(0, 1fr); } dd { margin-left: 1rem; } summary span { display: block; margin-left: 1rem; } }`;
