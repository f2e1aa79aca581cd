import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Setting, summaryOf, type Visibility } from "../../src/config/settings/setting.ts";
import { SETTINGS } from "../../src/config/settings/settings.ts";

/** The tables of settings in documents, made from the table of the program. `node test/docs/settings-tables.ts` writes them. */

const ROOT = resolve(import.meta.dirname, "../..");

type Section = Record<string, Setting<unknown>>;
const sections = Object.entries<Section>(SETTINGS);

const cell = (text: string) => text.replaceAll("|", "\\|");
const code = (text: string | undefined) => (text ? `\`${text}\`` : "");

const defaultOf = ({ default: value, shown_default }: Setting<unknown>) =>
  shown_default ?? (value ? code(value) : "none");

function table(settings: Setting<unknown>[], meaningOf: (setting: Setting<unknown>) => string): string {
  const rows = settings.map((setting) =>
    [(setting.env ?? []).map(code).join(", "), code(setting.flag), defaultOf(setting), cell(meaningOf(setting))].join(
      " | ",
    ),
  );
  return ["| Variable | Flag | Default | Meaning |", "|---|---|---|---|", ...rows.map((row) => `| ${row} |`)].join(
    "\n",
  );
}

const visible = (section: Section, ...levels: Visibility[]) =>
  Object.values(section).filter(({ visibility }) => levels.includes(visibility));

/** Generated parts by document and marker: `<!-- settings: NAME -->` to `<!-- /settings -->`. */
export const TABLES: Record<string, Record<string, string>> = {
  "README.md": {
    public: table(
      sections.flatMap(([, section]) => visible(section, "public")),
      (setting) => `${summaryOf(setting)}.`,
    ),
  },
  "docs/configuration.md": Object.fromEntries(
    sections.map(([name, section]) => [name, table(visible(section, "public", "advanced"), ({ meaning }) => meaning)]),
  ),
};

/** The document with its tables as they must be. */
export function withTables(document: string): string {
  return readFileSync(join(ROOT, document), "utf8").replaceAll(
    /(<!-- settings: (.+?) -->\n)[\s\S]*?(<!-- \/settings -->)/g,
    (_, begin: string, name: string, end: string) => `${begin}\n${TABLES[document]?.[name]}\n\n${end}`,
  );
}

if (import.meta.main)
  for (const document of Object.keys(TABLES)) writeFileSync(join(ROOT, document), withTables(document));
