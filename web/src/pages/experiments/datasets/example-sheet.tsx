import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { Id } from "../../../ui/code-block.tsx";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { DetailSection } from "../../../ui/layout.tsx";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { Sheet } from "../../../ui/overlay/dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Payload } from "../../traces/run/payload.tsx";
import { RunTraceLink } from "../../traces/trace-link.tsx";
import { EXPERIMENTS, exampleQuery } from "../queries.ts";
import { ExampleForm } from "./example-form.tsx";

export function ExampleSheet({
  id,
  as_of,
  onClose,
}: {
  id: string | undefined;
  /** Time of a version of the dataset, which cannot be changed. Undefined for the latest. */
  as_of: string | undefined;
  onClose(): void;
}) {
  const { data: example, error, refetch } = useQuery({ ...exampleQuery(id ?? "", as_of), enabled: id !== undefined });
  const client = useQueryClient();
  const [open, setOpen] = useState<"edit" | "delete">();
  const close = () => setOpen(undefined);
  if (id === undefined) return null;
  return (
    <Sheet
      open
      modal={false}
      onClose={onClose}
      title="Example"
      actions={
        <>
          <Id id={id} />
          {example && as_of === undefined && (
            <>
              <Button small onClick={() => setOpen("edit")}>
                <Pencil size={13} aria-hidden /> Edit
              </Button>
              <Button small square aria-label="Delete example" onClick={() => setOpen("delete")}>
                <Trash2 size={13} />
              </Button>
            </>
          )}
        </>
      }
      description={
        example && (
          <>
            Updated <RelativeTime time={example.modified_at} />
          </>
        )
      }
    >
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : example ? (
        <div className="grid gap-5">
          {example.source_run_id && <RunTraceLink run_id={example.source_run_id} label="Open source run" />}
          <Payload title="Input" value={example.inputs} isPlain />
          <Payload title="Expected" value={example.outputs} isPlain />
          {Object.keys(example.metadata).length > 0 && (
            <DetailSection title="Metadata">
              <JsonTree value={example.metadata} open={3} />
            </DetailSection>
          )}
        </div>
      ) : (
        <SkeletonRows label="Loading example" />
      )}
      {example && open === "edit" && <ExampleForm dataset_id={example.dataset_id} example={example} onClose={close} />}
      <Confirm
        open={open === "delete"}
        onClose={close}
        title="Delete this example?"
        action="Delete"
        onConfirm={async () => {
          await api.delete(`/api/v1/examples/${id}`);
          onClose();
          toast("Example deleted");
          // Not that of the deleted example, which may still be shown: it would fail.
          const predicate = ({ queryKey }: { queryKey: readonly unknown[] }) => !queryKey.includes(id);
          await client.invalidateQueries({ queryKey: EXPERIMENTS, predicate });
        }}
      >
        The example remains in earlier versions of the dataset and in the runs of existing experiments.
      </Confirm>
    </Sheet>
  );
}
