import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { adminRoutes } from "../../src/access/contract/admin.ts";
import { DEFAULT_SCOPES, SCOPES } from "../../src/platform/contract/caller.ts";
import { PROGRAM } from "../support/program.ts";
import { startService, type TestService } from "../support/service.ts";
import { blocksIn, read } from "./page.ts";

const page = read("docs/access.md");
const blocks = (language: string) => blocksIn(page, language);

describe("docs/access.md", () => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  const shell = async (command: string, env: Record<string, string> = {}) => {
    const here = command
      .replaceAll("http://localhost:2024", url)
      .replaceAll(/^threadmill /gm, `${process.execPath} ${PROGRAM} `);
    const settings = { ...process.env, THREADMILL_DATA: service.config.data_dir, LOG_LEVEL: "error", ...env };
    return (await promisify(execFile)("bash", ["-ec", here], { env: settings })).stdout;
  };

  it.skipIf(!inject("curl"))("shows commands that work, in their order", async () => {
    const [create, use, end, administer] = blocks("sh") as [string, string, string, string];
    const made = JSON.parse(await shell(create));
    const [shown] = blocks("json").map((text) => JSON.parse(text)) as [typeof made];
    expect(Object.keys(made)).toEqual(Object.keys(shown));
    const { id: _, key: __, ...known } = shown;
    expect(made).toMatchObject(known);
    expect(await shell(use, { KEY: made.key })).toBe("[][]");
    const listed = await shell(end, { ID: made.id });
    expect(listed).toContain(`${made.id}  active`);
    expect(listed).toContain(`Revoked API key ${made.id}.`);
    const admin = JSON.parse(await shell(create.replace("--user alice", "--user ada --scope admin")));
    expect(JSON.parse(await shell(administer, { ADMIN: admin.key }))).toMatchObject({ user_id: "alice" });
  });

  it("explains every scope, and which of them keys have by default", () => {
    const table = [...page.matchAll(/^\| `(\w+)` \| /gm)].map(([, name]) => name);
    expect(table.filter((name) => SCOPES.includes(name as "agents"))).toEqual([...SCOPES]);
    expect(page).toContain(`"scopes": ${JSON.stringify(DEFAULT_SCOPES).replaceAll(",", ", ")}`);
  });

  it("lists every route of the administration", () => {
    const listed = [...page.matchAll(/^\| `([A-Z]+ \/admin\/[^`]+)`/gm)].map(([, route]) => route);
    expect(listed).toEqual(Object.values(adminRoutes).map(({ method, path }) => `${method.toUpperCase()} ${path}`));
  });
});

describe("the route table of the administration", () => {
  const source = read("src/access/contract/admin.ts");

  it.each(Object.entries(adminRoutes))("names %s next to its method and path", (name, { method, path }) => {
    expect(source).toContain(`  ${name}: createRoute({\n    ...operation("${name}", "${method}", "${path}"),\n`);
  });
});
