import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/form/field.tsx";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { deploymentsKey, removeDeployment } from "./queries.ts";

/** Deletes a deployment. The user confirms by typing its name. */
export function DeleteDeployment({ deployment, onClose }: { deployment: Deployment; onClose(): void }) {
  const { id, name } = deployment;
  const client = useQueryClient();
  const navigate = useNavigate();
  const [typed, setTyped] = useState("");
  const deleting = useMutation({
    mutationFn: () => removeDeployment(id),
    onSuccess: async () => {
      toast(`Deleting “${name}”`);
      await navigate({ to: "/deployments" });
      await client.invalidateQueries({ queryKey: [...deploymentsKey, "list"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed === name) deleting.mutate();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Delete “${name}”?`}
      description="All running instances are stopped, and all threads, logs and secrets are deleted. This cannot be undone."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="delete" type="submit" look="danger" disabled={typed !== name || deleting.isPending}>
            Delete
          </Button>
        </>
      }
    >
      <form id="delete" onSubmit={submit}>
        <Field label={`Type “${name}” to confirm`} error={deleting.error?.message}>
          {(props) => <Input {...props} autoFocus value={typed} onChange={({ target }) => setTyped(target.value)} />}
        </Field>
      </form>
    </Dialog>
  );
}
