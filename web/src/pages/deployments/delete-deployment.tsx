import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { Field, Input } from "../../ui/form/field.tsx";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { deploymentsKey, removeDeployment } from "./queries.ts";

/** Deletes a deployment after the user has typed its name as confirmation. */
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
  return (
    <FormDialog
      title={`Delete “${name}”?`}
      description="The deployment's instances are stopped, and its threads, logs and secrets are deleted. This cannot be undone."
      action="Delete"
      look="danger"
      disabled={typed !== name || deleting.isPending}
      onSubmit={() => typed === name && deleting.mutate()}
      onClose={onClose}
    >
      <Field label={`Type “${name}” to confirm`} error={deleting.error?.message}>
        {(props) => <Input {...props} autoFocus value={typed} onChange={({ target }) => setTyped(target.value)} />}
      </Field>
    </FormDialog>
  );
}
