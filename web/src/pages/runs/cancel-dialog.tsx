import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count } from "../../ui/format.ts";
import { toast } from "../../ui/toast.tsx";
import { CANCEL_ACTIONS } from "./cancel-words.ts";
import { cancelByStatus, cancelThese, runsKey } from "./queries.ts";

type Which = "chosen" | "pending" | "running" | "all";

const BY_STATUS = [
  { value: "pending", label: "All that wait", hint: "Over all threads, also those that the filters hide." },
  { value: "running", label: "All that run", hint: "Over all threads, also those that the filters hide." },
  { value: "all", label: "All that wait or run", hint: "Over all threads, also those that the filters hide." },
] as const;

/** Asks which runs are to stop, and what becomes of what they have done. */
export function CancelDialog({ chosen, onClose }: { chosen: readonly RunOverviewItem[]; onClose(): void }) {
  const client = useQueryClient();
  const [which, setWhich] = useState<Which>(chosen.length > 0 ? "chosen" : "pending");
  const [action, setAction] = useState<CancelAction>("interrupt");
  const cancelling = useMutation({
    mutationFn: () => (which === "chosen" ? cancelThese(chosen, action) : cancelByStatus(which, action)),
    onSuccess: () => {
      toast("They stop.");
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: runsKey }),
  });
  const those = { value: "chosen", label: `The ${count(chosen.length)} chosen`, hint: "" } as const;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Cancel runs"
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button look="danger" disabled={cancelling.isPending} onClick={() => cancelling.mutate()}>
            Cancel the runs
          </Button>
        </>
      }
    >
      <div className="grid gap-4">
        <Choice<Which>
          legend="Which"
          value={which}
          onChange={setWhich}
          options={chosen.length > 0 ? [those, ...BY_STATUS] : BY_STATUS}
        />
        <Choice<CancelAction>
          legend="How"
          value={action}
          onChange={setAction}
          options={CANCEL_ACTIONS.map((one) => ({ ...one, value: one.action }))}
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
