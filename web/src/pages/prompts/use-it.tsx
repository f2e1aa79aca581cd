import { useState } from "react";
import { API_URL } from "../../api/request.ts";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Segmented } from "../../ui/form/segmented.tsx";
import { DetailSection } from "../../ui/layout.tsx";
import type { Template } from "./template.ts";

type Language = "python" | "javascript";
const LANGUAGES: { value: Language; label: string }[] = [
  { value: "python", label: "Python" },
  { value: "javascript", label: "JavaScript" },
];

/**
 * Shows the code that pulls a prompt and sets its variables.
 *
 * @param identifier `name`, or `name:version`
 */
export function UseIt({ identifier, template }: { identifier: string; template: Template | undefined }) {
  const [language, setLanguage] = useState<Language>("python");
  const { variables = [], placeholders = [] } = template ?? {};
  const values = variables.map(
    (name) => `  ${JSON.stringify(name)}: ${placeholders.includes(name) ? "[]" : '"..."'},\n`,
  );
  const input = values.length === 0 ? "{}" : `{\n${values.join("")}}`;
  const id = JSON.stringify(identifier);
  const url = JSON.stringify(`${API_URL}/api/v1`);
  const code = {
    python: [
      "from langsmith import Client",
      "",
      `client = Client(api_url=${url})`,
      `prompt = client.pull_prompt(${id})`,
      `value = prompt.invoke(${input})`,
    ],
    javascript: [
      'import { load } from "@langchain/core/load";',
      'import { Client } from "langsmith";',
      "",
      `const client = new Client({ apiUrl: ${url} });`,
      `const { manifest } = await client.pullPromptCommit(${id});`,
      "const prompt = await load(JSON.stringify(manifest));",
      `const value = await prompt.invoke(${input});`,
    ],
  };
  return (
    <DetailSection title="Use this prompt">
      <div className="grid grid-cols-1 justify-items-start gap-2">
        <Segmented
          label="Language"
          value={language}
          options={LANGUAGES}
          onChange={(chosen: Language) => setLanguage(chosen)}
        />
        <div className="w-full">
          <CodeBlock code={code[language].join("\n")} />
        </div>
        <p className="text-table text-text-3">
          If this server requires a key, set <code>LANGSMITH_API_KEY</code>.
        </p>
      </div>
    </DetailSection>
  );
}
