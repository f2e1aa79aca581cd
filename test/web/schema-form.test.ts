import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";

// By a variable: the types of the pages are those of browsers, and are checked with web/tsconfig.json.
const FORM: string = "../../web/src/ui/schema-form.tsx";
const { SchemaForm } = await import(FORM);

it("a form for a type that contains itself has an end, from where on it is written as JSON", () => {
  const entry = { type: "object", properties: { name: { type: "string" }, next: { $ref: "#/definitions/Entry" } } };
  const schema = { ...entry, definitions: { Entry: entry } };
  const form = renderToStaticMarkup(createElement(SchemaForm, { schema, value: {}, onChange: () => undefined }));
  expect(form.match(/>name \(optional\)</g)).toHaveLength(4);
  expect(form).toContain("JSON");
});
