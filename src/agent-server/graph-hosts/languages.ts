import type { Language } from "./checkpoint-requests.ts";
import type { HostSetup } from "./host.ts";

export const languageOfFile = (file: string): Language =>
  file.endsWith(".py") || !file.startsWith("/") ? "python" : "js";

/** Returns the setup with the graphs and the modules of one language. */
export function setupOf(language: Language, setup: HostSetup): HostSetup {
  const { embed } = setup;
  const embed_language = embed && "file" in embed ? languageOfFile(embed.file) : "js";
  return {
    ...setup,
    graphs: setup.graphs.filter((graph) => graph.language === language),
    embed: embed_language === language ? embed : undefined,
  };
}

/** The languages that need hosts. */
export const usedBy = (setup: HostSetup): Language[] =>
  (["js", "python"] as const).filter((language) => {
    const { graphs, embed } = setupOf(language, setup);
    return graphs.length > 0 || embed !== undefined;
  });
