import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Field, Input } from "../../ui/form/field.tsx";
import { Select } from "../../ui/form/select.tsx";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { assistantsQuery } from "./queries.ts";

/** Creates an assistant and opens its configuration. */
export function NewAssistant({
  graph_id: preselected,
  graphs,
  onClose,
}: {
  /** ID of the graph that is selected initially. */
  graph_id: string | undefined;
  graphs: readonly string[];
  onClose(): void;
}) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [graph_id, setGraph] = useState(preselected ?? graphs[0]);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const creating = useMutation({
    mutationFn: () => api.post<Assistant>("/assistants", { graph_id, name, description: description || null }),
    onSuccess: async ({ assistant_id }) => {
      await client.invalidateQueries(assistantsQuery);
      onClose();
      await navigate({
        to: "/agents/$assistant_id",
        params: { assistant_id },
        search: { section: "configuration" },
      });
    },
  });
  return (
    <FormDialog
      title="New assistant"
      description="An assistant is a graph with a named configuration."
      action="Create assistant"
      disabled={creating.isPending || !graph_id}
      error={creating.error}
      onSubmit={() => creating.mutate()}
      onClose={onClose}
    >
      <Field label="Name">
        {(props) => (
          <Input {...props} required autoFocus value={name} onChange={({ target }) => setName(target.value)} />
        )}
      </Field>
      <Field label="Graph">
        {({ id }) => (
          <Select
            id={id}
            value={graph_id}
            options={graphs.map((each) => ({ value: each, label: each }))}
            onChange={setGraph}
          />
        )}
      </Field>
      <Field label="Description" hint="Optional. Shown in the list of assistants.">
        {(props) => <Input {...props} value={description} onChange={({ target }) => setDescription(target.value)} />}
      </Field>
    </FormDialog>
  );
}
