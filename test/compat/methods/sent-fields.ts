import type { MethodTable } from "./outcomes.ts";

/** A request of a client: its path, and the names of its query parameters and of the fields of its body. */
export interface SentRequest {
  method: string;
  path: string;
  query: string[];
  body: string[];
}

/** What the check reads of an OpenAPI document. */
interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}
interface Operation {
  parameters?: { in: string; name: string }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}
interface Schema {
  $ref?: string;
  allOf?: Schema[];
  properties?: Record<string, unknown>;
  items?: Schema;
}

/** The names of the fields of a body. Those of a list are the fields of its items. */
export function fieldsOf(body: unknown): string[] {
  if (Array.isArray(body)) return [...new Set(body.flatMap(fieldsOf))];
  return typeof body === "object" && body !== null ? Object.keys(body) : [];
}

/** The fields of requests that their routes do not read: the service ignores unknown fields. */
function ignoredFields(requests: SentRequest[], document: unknown): string[] {
  const { paths, components } = document as Document;
  const propertiesOf = (schema: Schema | undefined): string[] => {
    if (schema?.$ref) return propertiesOf(components.schemas[schema.$ref.split("/").at(-1) as string]);
    const { allOf = [], items, properties = {} } = schema ?? {};
    return items ? propertiesOf(items) : [...Object.keys(properties), ...allOf.flatMap(propertiesOf)];
  };
  // The path with the fewest parameters: `/runs/crons` is also of the form `/runs/{run_id}`.
  const operationOf = ({ method, path }: SentRequest): Operation | undefined =>
    Object.entries(paths)
      .filter(([template, item]) => method in item && matches(template, path))
      .sort(([a], [b]) => a.split("{").length - b.split("{").length)[0]?.[1][method];
  const ignored = requests.flatMap((request) => {
    const operation = operationOf(request);
    // A request without a route fails, so that none of its fields is ignored without an error.
    if (!operation) return [];
    const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === "query");
    const properties = propertiesOf(Object.values(operation.requestBody?.content ?? {})[0]?.schema);
    return [
      ...request.query.filter((field) => !parameters.some(({ name }) => name === field)),
      ...request.body.filter((field) => !properties.includes(field)),
    ];
  });
  return [...new Set(ignored)];
}

const matches = (template: string, path: string): boolean =>
  new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, "[^/]+")}$`).test(path);

/** The ignored fields of calls that the sentences of their table do not name, with the calls. */
export function fieldsNotInTable(
  sent: Record<string, SentRequest[]>,
  document: unknown,
  { methods }: MethodTable,
): string[] {
  return Object.entries(sent).flatMap(([call, requests]) =>
    ignoredFields(requests, document)
      .filter((field) => !methods[call]?.includes(`\`${field}\``))
      .map((field) => `${call}: ${field}`),
  );
}
