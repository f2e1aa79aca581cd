import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/form/field.tsx";
import { Select } from "../../ui/form/select.tsx";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { assistantsQuery } from "./queries.ts";

interface NewAssistantProps {
  open: boolean;
  /** The preselected graph. */
  graph_id: string | undefined;
  graphs: readonly string[];
  onClose(): void;
}

/** Creates an assistant and opens its configuration. */
export function NewAssistant(props: NewAssistantProps) {
  return props.open ? <NewAssistantDialog {...props} /> : null;
}

function NewAssistantDialog({ graph_id: preselected, graphs, onClose }: NewAssistantProps) {
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
  const submit = (event: FormEvent) => {
    event.preventDefault();
    creating.mutate();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New assistant"
      description="A named configuration of a graph."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="new-assistant" type="submit" look="primary" disabled={creating.isPending || !graph_id}>
            Create assistant
          </Button>
        </>
      }
    >
      <form id="new-assistant" onSubmit={submit} className="grid gap-4">
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
        {creating.error && (
          <p role="alert" className="text-error text-table">
            {creating.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}
