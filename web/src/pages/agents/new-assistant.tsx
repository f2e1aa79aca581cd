import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";
import { assistantsQuery } from "./queries.ts";

interface NewAssistantProps {
  open: boolean;
  /** The one to offer first. */
  graph_id: string | undefined;
  graphs: readonly string[];
  onClose(): void;
}

/** Makes an assistant and leads to its configuration. */
export function NewAssistant(props: NewAssistantProps) {
  return props.open ? <NewAssistantDialog {...props} /> : null;
}

function NewAssistantDialog({ graph_id: offered, graphs, onClose }: NewAssistantProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [graph_id, setGraph] = useState(offered ?? graphs[0]);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const making = useMutation({
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
    making.mutate();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New assistant"
      description="A graph with a configuration of its own, under a name."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="new-assistant" type="submit" look="primary" disabled={making.isPending || !graph_id}>
            Make the assistant
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
        <Field label="Description" hint="For people: what it is for.">
          {(props) => <Input {...props} value={description} onChange={({ target }) => setDescription(target.value)} />}
        </Field>
        {making.error && (
          <p role="alert" className="text-error text-table">
            {making.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}
