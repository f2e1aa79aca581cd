import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { toast } from "../../ui/toast.tsx";
import { assistantQuery, assistantsQuery, schemasQuery } from "./queries.ts";
import { SchemaSection } from "./schema-section.tsx";

/** What a new version can change; the rest is the graph's. */
type Draft = Pick<Assistant, "name" | "description" | "config" | "context" | "metadata">;

/** The assistant's fields, by the graph's own schemas where it has some. What is saved is a new version, in force at once. */
export function Configuration({ assistant }: { assistant: Assistant }) {
  const { assistant_id } = assistant;
  const client = useQueryClient();
  const { data: schemas } = useQuery(schemasQuery(assistant_id));
  const [draft, setDraft] = useState<Draft>(assistant);
  const change = <Key extends keyof Draft>(key: Key, value: Draft[Key]) =>
    setDraft((before) => ({ ...before, [key]: value }));
  const saving = useMutation({
    mutationFn: () => api.patch<Assistant>(`/assistants/${assistant_id}`, changesOf(draft, assistant)),
    onSuccess: async (saved) => {
      toast(`Saved as version ${saved.version}.`);
      client.setQueryData(assistantQuery(assistant_id).queryKey, saved);
      await client.invalidateQueries(assistantsQuery);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    saving.mutate();
  };
  return (
    <form onSubmit={submit} className="grid max-w-3xl gap-6">
      <div className="grid gap-3">
        <Field label="Name">
          {(props) => (
            <Input {...props} required value={draft.name} onChange={({ target }) => change("name", target.value)} />
          )}
        </Field>
        <Field label="Description">
          {(props) => (
            <Input
              {...props}
              value={draft.description ?? ""}
              onChange={({ target }) => change("description", target.value)}
            />
          )}
        </Field>
      </div>
      <SchemaSection
        title="Context"
        hint="What the graph is told with each run."
        schema={schemas?.context_schema}
        value={draft.context}
        onChange={(context) => change("context", context)}
      />
      <SchemaSection
        title="Config"
        hint="Settings of the graph (configurable), how many steps a run may take (recursion_limit), and tags."
        schema={schemas && CONFIG_SCHEMA}
        value={draft.config}
        onChange={(config) => change("config", config)}
      />
      <SchemaSection
        title="Metadata"
        hint="Yours: threads and runs are found by it. A key that is left out stays as it was."
        schema={null}
        value={draft.metadata}
        onChange={(metadata) => change("metadata", metadata)}
      />
      {saving.error && (
        <p role="alert" className="text-error text-table">
          {saving.error.message}
        </p>
      )}
      <div className="flex items-center gap-3">
        <Button type="submit" look="primary" disabled={saving.isPending}>
          Save as version {assistant.version + 1}
        </Button>
        <span className="text-table text-text-3">New runs use it; those that wait or run keep what they have.</span>
      </div>
    </form>
  );
}

/** What all graphs have. */
const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    configurable: { title: "configurable", description: "JSON: the graph's own settings." },
    recursion_limit: {
      type: "integer",
      title: "recursion_limit",
      minimum: 1,
      description: "Most steps a run may take.",
    },
    tags: { title: "tags", description: "JSON: a list of words." },
  },
};

const changesOf = (draft: Draft, assistant: Assistant): Partial<Draft> =>
  Object.fromEntries(
    (["name", "description", "config", "context", "metadata"] as const)
      .filter((key) => JSON.stringify(draft[key]) !== JSON.stringify(assistant[key]))
      .map((key) => [key, draft[key]]),
  );
