import { JsonError, parseUntrusted } from "../../platform/lib/json/json.ts";

type Limits = Parameters<typeof parseUntrusted>[1];

/**
 * Parses JSON from a client. NaN and Infinity become null. Python's `json` writes them, and the Python client uses it for values that its
 * faster encoder refuses, such as large integers and unpaired surrogates.
 */
export function parsePythonJson(text: string, limits: Limits): unknown {
  try {
    return parseUntrusted(text, limits);
  } catch (error) {
    if (!(error instanceof JsonError) || !/NaN|Infinity/.test(text)) throw error;
    return parseUntrusted(withNulls(text), limits);
  }
}

function withNulls(text: string): string {
  const token = /"|NaN|-?Infinity/g;
  let result = "";
  let copied = 0;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    if (match[0] === '"') token.lastIndex = endOfString(text, token.lastIndex);
    else {
      result += `${text.slice(copied, match.index)}null`;
      copied = token.lastIndex;
    }
  }
  return result + text.slice(copied);
}

/** @param from the index after the opening quote */
function endOfString(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (char === "\\") i++;
    else if (char === '"') return i + 1;
  }
  return text.length;
}
