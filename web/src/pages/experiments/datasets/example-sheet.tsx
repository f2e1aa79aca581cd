import { useQuery } from "@tanstack/react-query";
import { Id } from "../../../ui/code-block.tsx";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { DetailSection } from "../../../ui/layout.tsx";
import { Sheet } from "../../../ui/overlay/dialog.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Payload } from "../../traces/run/payload.tsx";
import { RunTraceLink } from "../../traces/trace-link.tsx";
import { exampleQuery } from "../queries.ts";

export function ExampleSheet({ id, onClose }: { id: string | undefined; onClose(): void }) {
  const { data: example, error, refetch } = useQuery({ ...exampleQuery(id ?? ""), enabled: id !== undefined });
  if (id === undefined) return null;
  return (
    <Sheet
      open
      modal={false}
      onClose={onClose}
      title="Example"
      actions={<Id id={id} />}
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
          {example.metadata && Object.keys(example.metadata).length > 0 && (
            <DetailSection title="Metadata">
              <JsonTree value={example.metadata} open={3} />
            </DetailSection>
          )}
        </div>
      ) : (
        <SkeletonRows label="Loading example" />
      )}
    </Sheet>
  );
}
