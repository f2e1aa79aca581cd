import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { SchemaForm } from "./schema-form.tsx";

it("a form for a recursive type has a maximum depth, below which objects are edited as JSON", () => {
  const entry = { type: "object", properties: { name: { type: "string" }, next: { $ref: "#/definitions/Entry" } } };
  const schema = { ...entry, definitions: { Entry: entry } };
  const form = renderToStaticMarkup(<SchemaForm schema={schema} value={{}} onChange={() => undefined} />);
  expect(form.match(/>name</g)).toHaveLength(4);
  expect(form).toContain("JSON");
});
