/** The Postgres schema of a deployment. */
export const schemaOf = (deployment_id: string): string => `deployment_${deployment_id.replaceAll("-", "")}`;

/** The address of a database whose tables are those of a schema, and no others. */
export function urlWithSchema(database_url: string, schema: string): string {
  const url = new URL(database_url);
  const options = [url.searchParams.get("options"), `-c search_path=${schema}`].filter(Boolean).join(" ");
  url.searchParams.set("options", options);
  // A plus is a space in forms alone; Postgres' clients take it for itself.
  url.search = url.search.replaceAll("+", "%20");
  return url.href;
}
