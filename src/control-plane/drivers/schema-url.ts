/** The Postgres schema of a deployment. */
export const schemaOf = (deployment_id: string): string => `deployment_${deployment_id.replaceAll("-", "")}`;

/** Parameters of a Postgres URL that say who logs in, in other ways than with a password. */
const CREDENTIALS = ["user", "password", "passfile", "sslcert", "sslkey", "sslpassword"];

/** The address of the service's database for the role of a deployment, whose tables are those of its schema. */
export function urlOfDeployment(
  database_url: string,
  { schema, role, password }: { schema: string; role: string; password: string },
): string {
  const url = new URL(database_url);
  for (const name of CREDENTIALS) url.searchParams.delete(name);
  [url.username, url.password] = [role, password];
  const options = [url.searchParams.get("options"), `-c search_path=${schema}`].filter(Boolean).join(" ");
  url.searchParams.set("options", options);
  // A plus is a space in forms alone; Postgres' clients take it for itself.
  url.search = url.search.replaceAll("+", "%20");
  return url.href;
}
