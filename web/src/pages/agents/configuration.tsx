import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Field, FormError, Input, submits } from "../../ui/form/field.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { assistantQuery, assistantsQuery, schemasQuery } from "./queries.ts";
import { SchemaSection } from "./schema-section.tsx";

/** Assistant fields that a new version can change. */
type Draft = Pick<Assistant, "name" | "description" | "config" | "context" | "metadata">;

/** Edits an assistant's fields, with forms for the schemas of its graph. Saving creates and activates a new version. */
export function Configuration({ assistant }: { assistant: Assistant }) {
  const { assistant_id } = assistant;
  const client = useQueryClient();
  const { data: schemas } = useQuery(schemasQuery(assistant_id));
  // When another user saves meanwhile, these changes stay, and the other fields get the values of the new version.
  const [changes, setChanges] = useState<Partial<Draft>>({});
  const draft: Draft = { ...assistant, ...changes };
  const change = <Key extends keyof Draft>(key: Key, value: Draft[Key]) =>
    setChanges((before) => ({ ...before, [key]: value }));
  const saving = useMutation({
    mutationFn: (sent: Partial<Draft>) =>
      api.patch<Assistant>(`/assistants/${assistant_id}`, changesOf({ ...assistant, ...sent }, assistant)),
    onSuccess: async (saved, sent) => {
      // Keeps what was changed while it was saved.
      setChanges((now) => (now === sent ? {} : now));
      toast(`Saved as version ${saved.version}`);
      client.setQueryData(assistantQuery(assistant_id).queryKey, saved);
      await client.invalidateQueries(assistantsQuery);
    },
  });
  return (
    <form onSubmit={submits(() => saving.mutate(changes))} className="grid max-w-3xl gap-6">
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
        hint="Passed to the graph on each run."
        schema={schemas?.context_schema}
        value={draft.context}
        onChange={(context) => change("context", context)}
      />
      <SchemaSection
        title="Config"
        hint="Graph settings (“configurable”), maximum number of steps per run (“recursion_limit”) and tags (“tags”)."
        schema={schemas && CONFIG_SCHEMA}
        value={draft.config}
        onChange={(config) => change("config", config)}
      />
      <SchemaSection
        title="Metadata"
        hint="Custom keys for finding assistants. They are also added to the metadata of each run. Saving adds and changes keys. It does not delete keys that you remove here."
        schema={null}
        value={draft.metadata}
        onChange={(metadata) => change("metadata", metadata)}
      />
      <FormError error={saving.error} />
      <div className="flex items-center gap-3">
        <Button type="submit" look="primary" disabled={saving.isPending}>
          Save as version {assistant.version + 1}
        </Button>
        <span className="text-table text-text-3">
          Applies to new runs. Pending and running runs keep their configuration.
        </span>
      </div>
    </form>
  );
}

/** Config fields that all graphs support. */
const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    configurable: { title: "configurable", description: "Graph settings, as JSON." },
    recursion_limit: {
      type: "integer",
      title: "recursion_limit",
      minimum: 1,
      description: "Maximum number of steps per run.",
    },
    tags: { title: "tags", description: "Tags of each run, as a JSON list of strings." },
  },
};

const changesOf = (draft: Draft, assistant: Assistant): Partial<Draft> =>
  Object.fromEntries(
    (["name", "description", "config", "context", "metadata"] as const)
      .filter((key) => JSON.stringify(draft[key]) !== JSON.stringify(assistant[key]))
      .map((key) => [key, draft[key]]),
  );
