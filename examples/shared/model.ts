import type { BaseChatModel } from "@langchain/core/language_models/chat_models";

interface Provider {
  key: string;
  package: string;
  className: string;
  defaultModel: string;
}

const openai: Provider = {
  key: "OPENAI_API_KEY",
  package: "@langchain/openai",
  className: "ChatOpenAI",
  defaultModel: "gpt-5-mini",
};

const anthropic: Provider = {
  key: "ANTHROPIC_API_KEY",
  package: "@langchain/anthropic",
  className: "ChatAnthropic",
  defaultModel: "claude-sonnet-4-5",
};

/** The model, or a sentence for the user about a missing key or package. */
export type Loaded = { model: BaseChatModel } | { missing: string };

/** @param name a model name such as "gpt-5-mini" or "claude-sonnet-4-5"; default: the default model of the provider whose key is set */
export async function loadModel(name?: string): Promise<Loaded> {
  const provider = pickProvider(name);
  if (!provider) {
    return {
      missing: `To use a real model, set ${openai.key} and install ${openai.package}, or set ${anthropic.key} and install ${anthropic.package}, then restart the server.`,
    };
  }
  if (!process.env[provider.key]) {
    return { missing: `To use ${name}, set ${provider.key} and install ${provider.package}, then restart the server.` };
  }

  try {
    // A dynamic import with a variable: the graph loads without these packages,
    // and the type checker does not resolve them.
    const exports: Record<string, new (fields: { model: string }) => BaseChatModel> = await import(provider.package);
    const Model = exports[provider.className];
    if (!Model) throw new Error(`${provider.package} has no ${provider.className}.`);
    return { model: new Model({ model: name || provider.defaultModel }) };
  } catch (error) {
    if (!isNotInstalled(error, provider.package)) throw error;
    return {
      missing: `${provider.key} is set, but its package is missing: run "npm install ${provider.package}" and restart the server.`,
    };
  }
}

function pickProvider(name?: string): Provider | undefined {
  if (name) return name.startsWith("claude") ? anthropic : openai;
  return [openai, anthropic].find((provider) => process.env[provider.key]);
}

/** Whether this package is missing, and not one of its dependencies. */
function isNotInstalled(error: unknown, packageName: string): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const isMissing = error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND";
  return isMissing && error.message.includes(`'${packageName}'`);
}
