/**
 * Names of files and folders that are never part of deployed source, because they are generated or local. The variables in
 * the project's env file are sent as secrets instead.
 */
export const NEVER_DEPLOYED =
  /^(node_modules|\.venv|venv|__pycache__|\.git|\.threadmill|\.langgraph_api|\.DS_Store|\.env|\.env\.(?!example$|sample$).*)$/;

/** A parsed line of a .gitignore or .dockerignore. */
interface Rule {
  pattern: RegExp;
  folders_only: boolean;
  /** Whether the line begins with `!`, which includes paths that an earlier line excludes. */
  includes: boolean;
}

/** The paths that a .gitignore or .dockerignore excludes. */
export interface IgnoreRules {
  /**
   * @param path relative to the folder of the ignore file, with `/` as the separator
   * @returns whether the last matching line excludes the path; undefined when no line matches
   */
  excludes(path: string, is_folder: boolean): boolean | undefined;
}

/**
 * Parses a .gitignore or .dockerignore file. In a .dockerignore file, every pattern is anchored at the root.
 *
 * @see https://git-scm.com/docs/gitignore and https://docs.docker.com/build/concepts/context/#dockerignore-files
 */
export function readIgnoreRules(text: string, kind: "git" | "docker"): IgnoreRules {
  const rules = text.split(/\r?\n/).flatMap((line) => ruleOf(line, kind) ?? []);
  return {
    excludes(path, is_folder) {
      const last = rules.findLast(({ pattern, folders_only }) => (is_folder || !folders_only) && pattern.test(path));
      return last && !last.includes;
    },
  };
}

function ruleOf(line: string, kind: "git" | "docker"): Rule | undefined {
  // Trailing spaces are part of the pattern only after a backslash.
  let text = line.replace(/(?<!\\)\s+$/, "");
  if (text === "" || text.startsWith("#")) return undefined;
  const includes = text.startsWith("!");
  if (includes) text = text.slice(1);
  text = text.replace(/^\.\//, "");
  const folders_only = kind === "git" && text.endsWith("/");
  text = text.replace(/\/+$/, "");
  const isAnchored = kind === "docker" || text.includes("/");
  const body = expressionOf(text.replace(/^\//, ""));
  return { pattern: new RegExp(`^${isAnchored ? "" : "(?:.*/)?"}${body}$`), folders_only, includes };
}

/** Converts a pattern with `*`, `?`, `[a-z]` and `**` to a regular expression. */
function expressionOf(pattern: string): string {
  const parts = /\/\*\*\/|^\*\*\/|\/\*\*$|\*+|\?|\[[^\]]+\]|\\.|[\s\S]/g;
  return pattern.replace(parts, (part) => {
    if (part === "/**/") return "/(?:.*/)?";
    if (part === "**/") return "(?:.*/)?";
    if (part === "/**") return "/.*";
    if (part.startsWith("*")) return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.length > 1 && part.startsWith("[")) return classOf(part);
    const literal = part.startsWith("\\") ? part.slice(1) : part;
    return literal.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
}

/** In Git, a reversed range such as `z-a` matches its first character. In a regular expression, it is an error. */
const classOf = (part: string): string =>
  part
    .replace(/^\[!/, "[^")
    .replaceAll(/([^[^])-([^\]])/g, (range, from: string, to: string) => (from > to ? from : range))
    .replaceAll("\\", "\\\\");
