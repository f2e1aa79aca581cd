import { html, raw } from "hono/html";

/** The parts of an OpenAPI document that the page shows. */
export interface ApiDocument {
  info: { title: string; description?: string; version: string };
  tags?: { name: string; description?: string }[];
  paths?: Record<string, Record<string, unknown>>;
}

interface Operation {
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: { name: string; in: string; required?: boolean; description?: string }[];
  responses?: Record<string, { description?: string }>;
}

/**
 * The API's reference as one page that needs nothing from anywhere: no script, no other host. For trying things
 * out there is /openapi.json, which every API tool reads.
 */
export function docsPage(document: ApiDocument) {
  const { info, tags = [], paths = {} } = document;
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
<h1>${info.title} <small>${info.version}</small></h1>
<p>${info.description} <a href="openapi.json">openapi.json</a></p>
${tags.map(
  (tag) => html`<h2>${tag.name}</h2><p>${tag.description}</p>
${operations.filter((operation) => operation.tags?.includes(tag.name)).map(operationPart)}`,
)}
</main>
</body>
</html>`;
}

const operationPart = ({
  method,
  path,
  summary,
  description,
  parameters = [],
  responses = {},
}: Operation & { method: string; path: string }) =>
  html`<details><summary><b class="${method}">${method.toUpperCase()}</b> <code>${path}</code> <span>${summary}</span></summary>
${description ? html`<p>${description}</p>` : ""}
${parameters.length > 0 ? html`<dl>${parameters.map((p) => html`<dt><code>${p.name}</code> <small>${p.in}${p.required ? ", required" : ""}</small></dt><dd>${p.description ?? ""}</dd>`)}</dl>` : ""}
<dl>${Object.entries(responses).map(([status, response]) => html`<dt><code>${status}</code></dt><dd>${response.description ?? ""}</dd>`)}</dl></details>`;

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 small { font-weight: normal; opacity: .6; font-size: 1rem; }
h2 { margin: 2rem 0 0; }
details { border-top: 1px solid color-mix(in srgb, currentColor 18%, transparent); padding: .4rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary span { opacity: .75; }
b { display: inline-block; min-width: 4.2rem; font-size: .8rem; }
.get { color: #0a7; } .post { color: #26c; } .delete { color: #c33; } .patch { color: #a60; }
@media (prefers-color-scheme: dark) { .get { color: #3d9; } .post { color: #7af; } .delete { color: #f77; } .patch { color: #fb5; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0 .5rem 1rem; }
dd { margin: 0; }`;
