import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { IMAGE_FIELDS, KNOWN_FIELDS, type KnownFields } from "../../src/config/project.ts";
import { readTables } from "../compat/methods/outcomes.ts";
import { FEATURES } from "./agent-server-methods.ts";
import { FIELDS, rowOf } from "./langgraph-json.ts";
import { ROOT } from "./page.ts";

describe("docs/compatibility.md", () => {
  it("has a reason for everything that does not work", () => {
    const outcomes = Object.values(readTables("agent_server")).flatMap(({ methods }) => Object.entries(methods));
    expect(outcomes.length).toBeGreaterThan(200);
    expect(outcomes.filter(([, outcome]) => !/^(works$|(works|limit|not offered|refused): .+)/.test(outcome))).toEqual(
      [],
    );
    expect(Object.entries(FIELDS).filter(([, [status, note]]) => status !== "works" && note === "")).toEqual([]);
    expect(FEATURES.filter(([, , note]) => note === "")).toEqual([]);
  });

  it("has a test for each feature that works", () => {
    const untested = FEATURES.filter(([, status, , test]) => status === "works" && !existsSync(join(ROOT, test)));
    expect(untested).toEqual([]);
  });
});

describe("the fields of langgraph.json in docs/compatibility.md", () => {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-fields-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  const pathsIn = (known: KnownFields, prefix = ""): string[] =>
    Object.entries(known).flatMap(([name, part]) =>
      part === true ? [prefix + name] : pathsIn(part, `${prefix}${name}.`),
    );
  const known = pathsIn(KNOWN_FIELDS);
  const refused = Object.keys(FIELDS).filter((path) => FIELDS[path]?.[0] === "refused");

  it.each(known)("include the field that the program accepts: %s", (field) => {
    expect(rowOf(field)?.[0]).toMatch(/^(works|no effect)$/);
  });

  it("are accepted by the program, unless they are refused", () => {
    const accepted = Object.keys(FIELDS).filter((path) => !refused.includes(path) && !IMAGE_FIELDS.includes(path));
    const unknown = accepted.filter((path) => !known.some((field) => field === path || field.startsWith(`${path}.`)));
    expect(unknown).toEqual([]);
  });

  it.each(IMAGE_FIELDS)("include the field that causes a warning: %s", (field) => {
    const config = join(folder, "image.json");
    writeFileSync(config, JSON.stringify({ graphs: { agent: "./agent.ts:graph" }, [field]: "x" }));
    expect(readConfig("serve", { config, data: folder }, {}).ignored_fields).toEqual([field]);
    expect(rowOf(field)?.[0]).toBe("warning");
  });

  it("include the version of Node.js, which must not be later than the one that runs the program", () => {
    const config = join(folder, "node.json");
    const read = (node_version: unknown) => {
      writeFileSync(config, JSON.stringify({ graphs: { agent: "./agent.ts:graph" }, node_version }));
      return () => readConfig("serve", { config, data: folder }, {});
    };
    for (const version of ["20", 22, null]) expect(read(version)).not.toThrow();
    expect(read("99")).toThrow("node_version is 99, but Threadmill is running on Node.js");
    expect(read("lts")).toThrow("node_version must be a major version");
  });

  it.each(refused)("include the field that dev reports and serve refuses: %s", (path) => {
    const config = join(folder, `${path}.json`);
    const project = path.split(".").reduceRight<unknown>((value, name) => ({ [name]: value }), "set");
    writeFileSync(config, JSON.stringify({ graphs: { agent: "./agent.ts:graph" }, ...(project as object) }));
    const read = (command: "dev" | "serve") => readConfig(command, { config, data: folder }, {});
    // A field that contains no accepted field is reported itself.
    const [reported = "", ...others] = read("dev").ignored_fields;
    expect([path, path.split(".")[0]]).toContain(reported);
    expect(others).toEqual([]);
    expect(() => read("serve")).toThrow(`${reported} would have no effect`);
  });
});
