import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { FormError, RadioGroup } from "../../ui/form/field.tsx";
import { count } from "../../ui/format.ts";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { CANCEL_ACTIONS, cancelByStatus, cancelRuns } from "./cancel-actions.ts";
import { runsKey } from "./queries.ts";

type Selection = "chosen" | "pending" | "running" | "all";

const BY_STATUS = [
  { value: "pending", label: "Pending", hint: "Runs of all threads, including runs hidden by the current filters." },
  { value: "running", label: "Running", hint: "Runs of all threads, including runs hidden by the current filters." },
  {
    value: "all",
    label: "Pending and running",
    hint: "Runs of all threads, including runs hidden by the current filters.",
  },
] as const;

/** Cancels runs by interrupt or rollback: the selected runs, all pending runs, all running runs, or both. */
export function CancelDialog({ chosen, onClose }: { chosen: readonly RunOverviewItem[]; onClose(): void }) {
  const client = useQueryClient();
  const [selection, setSelection] = useState<Selection>(chosen.length > 0 ? "chosen" : "pending");
  const [action, setAction] = useState<CancelAction>("interrupt");
  const cancelling = useMutation({
    mutationFn: () => (selection === "chosen" ? cancelRuns(chosen, action) : cancelByStatus(selection, action)),
    onSuccess: () => {
      toast("Cancelling runs");
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: runsKey }),
  });
  const selected = { value: "chosen", label: `${count(chosen.length)} selected` } as const;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Cancel runs"
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button look="danger" disabled={cancelling.isPending} onClick={() => cancelling.mutate()}>
            Cancel runs
          </Button>
        </>
      }
    >
      <div className="grid gap-4">
        <RadioGroup<Selection>
          legend="Runs"
          value={selection}
          onChange={setSelection}
          options={chosen.length > 0 ? [selected, ...BY_STATUS] : BY_STATUS}
        />
        <RadioGroup<CancelAction>
          legend="Action"
          value={action}
          onChange={setAction}
          options={CANCEL_ACTIONS.map((option) => ({ ...option, value: option.action }))}
        />
        <FormError error={cancelling.error} />
      </div>
    </Dialog>
  );
}
