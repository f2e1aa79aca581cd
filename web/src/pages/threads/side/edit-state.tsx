import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../../api/request.ts";
import { JsonEditor } from "../../../ui/form/json-editor.tsx";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { stateQuery, threadKey } from "../queries.ts";

type Values = Record<string, unknown>;

/**
 * Edits the state at a checkpoint. Saving creates a checkpoint that follows the edited one.
 *
 * @param onSaved runs from the new checkpoint
 */
export function EditState({
  thread_id,
  checkpoint_id,
  onSaved,
  onClose,
}: {
  thread_id: string;
  checkpoint_id: string;
  onSaved(checkpoint_id: string): Promise<unknown>;
  onClose(): void;
}) {
  const client = useQueryClient();
  const { data: state, error } = useQuery(stateQuery(thread_id, checkpoint_id));
  const [edited, setEdited] = useState<Values>();
  const before = (state?.values ?? {}) as Values;
  const saving = useMutation({
    mutationFn: async () => {
      const values = changesOf(before, edited ?? before);
      if (Object.keys(values).length === 0) throw new Error("Change a value of the state first.");
      const { checkpoint } = await api.post<{ checkpoint: { checkpoint_id: string } }>(`/threads/${thread_id}/state`, {
        values,
        checkpoint_id,
      });
      await client.invalidateQueries({ queryKey: threadKey(thread_id) });
      await onSaved(checkpoint.checkpoint_id);
    },
    onSuccess: onClose,
  });
  return (
    <FormDialog
      title="Edit state"
      description="The changed keys are written as if the last node had returned them: the graph's reducers apply, and a message replaces an existing message with the same ID."
      action="Save and run from here"
      disabled={!state || saving.isPending}
      error={saving.error ?? error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      {state && (
        <JsonEditor
          label="State (JSON)"
          isObject
          value={edited ?? before}
          onChange={(value) => setEdited(value as Values)}
        />
      )}
    </FormDialog>
  );
}

/** Keys whose values differ. A key that was removed cannot be written, so it is ignored. */
const changesOf = (before: Values, after: Values): Values =>
  Object.fromEntries(
    Object.entries(after).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])),
  );
