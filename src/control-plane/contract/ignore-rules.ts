/**
 * Names of files and folders that are in no source that is deployed: the service makes these itself, or they have no business
 * there. What .env files hold is sent as secrets.
 */
export const NEVER_DEPLOYED =
  /^(node_modules|\.git|\.threadmill|\.langgraph_api|\.DS_Store|\.env|\.env\.(?!example$|sample$).*)$/;

/** A line of .gitignore, understood. */
interface Rule {
  pattern: RegExp;
  folders_only: boolean;
  /** `!`: what an earlier line left out is taken all the same. */
  takes: boolean;
}

/** Which paths below the folder of a .gitignore (or .dockerignore) are left out. */
export interface IgnoreRules {
  /** @param path relative to that folder, with `/`; undefined: no line says anything of it */
  leavesOut(path: string, is_folder: boolean): boolean | undefined;
}

/**
 * Reads the lines of a .gitignore, or of a .dockerignore, in which every pattern begins at the root.
 *
 * @see https://git-scm.com/docs/gitignore and https://docs.docker.com/build/concepts/context/#dockerignore-files
 */
export function readIgnoreRules(text: string, kind: "git" | "docker"): IgnoreRules {
  const rules = text.split(/\r?\n/).flatMap((line) => ruleOf(line, kind) ?? []);
  return {
    leavesOut(path, is_folder) {
      const last = rules.findLast(({ pattern, folders_only }) => (is_folder || !folders_only) && pattern.test(path));
      return last && !last.takes;
    },
  };
}

function ruleOf(line: string, kind: "git" | "docker"): Rule | undefined {
  // Spaces at the end count only behind a backslash.
  let text = line.replace(/(?<!\\)\s+$/, "");
  if (text === "" || text.startsWith("#")) return undefined;
  const takes = text.startsWith("!");
  if (takes) text = text.slice(1);
  text = text.replace(/^\.\//, "");
  const folders_only = kind === "git" && text.endsWith("/");
  text = text.replace(/\/+$/, "");
  const isAnchored = kind === "docker" || text.includes("/");
  const body = expressionOf(text.replace(/^\//, ""));
  return { pattern: new RegExp(`^${isAnchored ? "" : "(?:.*/)?"}${body}$`), folders_only, takes };
}

/** A pattern with `*`, `?`, `[a-z]` and `**` as a regular expression. */
function expressionOf(pattern: string): string {
  const parts = /\/\*\*\/|^\*\*\/|\/\*\*$|\*+|\?|\[[^\]]+\]|\\.|[\s\S]/g;
  return pattern.replace(parts, (part) => {
    if (part === "/**/") return "/(?:.*/)?";
    if (part === "**/") return "(?:.*/)?";
    if (part === "/**") return "/.*";
    if (part.startsWith("*")) return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.length > 1 && part.startsWith("[")) return part.replace(/^\[!/, "[^").replaceAll("\\", "\\\\");
    const literal = part.startsWith("\\") ? part.slice(1) : part;
    return literal.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
}
