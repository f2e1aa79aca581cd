import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { CANCEL_ACTIONS, cancelByStatus, cancelRuns } from "./cancel-actions.ts";
import { runsKey } from "./queries.ts";

type Selection = "chosen" | "pending" | "running" | "all";

const BY_STATUS = [
  { value: "pending", label: "Pending", hint: "All threads, including runs hidden by filters." },
  { value: "running", label: "Running", hint: "All threads, including runs hidden by filters." },
  { value: "all", label: "Pending and running", hint: "All threads, including runs hidden by filters." },
] as const;

/** Cancels the selected runs or all active runs, with interrupt or rollback. */
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
  const selected = { value: "chosen", label: `${count(chosen.length)} selected`, hint: "" } as const;
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
        <Choice<Selection>
          legend="Runs"
          value={selection}
          onChange={setSelection}
          options={chosen.length > 0 ? [selected, ...BY_STATUS] : BY_STATUS}
        />
        <Choice<CancelAction>
          legend="Action"
          value={action}
          onChange={setAction}
          options={CANCEL_ACTIONS.map((option) => ({ ...option, value: option.action }))}
        />
        {cancelling.error && (
          <p role="alert" className="text-error text-table">
            {cancelling.error.message}
          </p>
        )}
      </div>
    </Dialog>
  );
}

function Choice<Value extends string>({
  legend,
  value,
  onChange,
  options,
}: {
  legend: string;
  value: Value;
  onChange(value: Value): void;
  options: readonly { value: Value; label: string; hint: string }[];
}) {
  return (
    <fieldset className="grid gap-1.5">
      <legend className="mb-1 font-medium text-table">{legend}</legend>
      {options.map((option) => (
        <label key={option.value} className="flex items-start gap-2 text-body">
          <input
            type="radio"
            name={legend}
            className="mt-1 size-3.5 accent-accent"
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>
            {option.label}
            {option.hint && <span className="block text-table text-text-3">{option.hint}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
