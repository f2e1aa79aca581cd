import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { API_URL, api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/code-block.tsx";
import { FormError } from "../../../ui/form/field.tsx";
import { Dialog } from "../../../ui/overlay/dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { SkeletonRows } from "../../../ui/states.tsx";
import { TRACES } from "../queries.ts";

/** Creates, copies and revokes the public link of a run. */
export function ShareDialog({ run, onClose }: { run: ExperimentRun; onClose(): void }) {
  const client = useQueryClient();
  const path = `/api/v1/runs/${run.id}/share`;
  const queryKey = [...TRACES, "share", run.id];
  const share = useQuery({
    queryKey,
    queryFn: ({ signal }) => api.get<{ share_token?: string }>(path, { signal }),
  });
  const onSettled = () => client.invalidateQueries({ queryKey });
  const creating = useMutation({ mutationFn: () => api.put(path, {}), onSettled });
  const revoking = useMutation({
    mutationFn: () => api.delete(path),
    onSuccess: () => toast("Link revoked"),
    onSettled,
  });
  const token = share.data?.share_token;
  const isRoot = run.parent_run_id === null;
  return (
    <Dialog
      open
      onClose={onClose}
      title={isRoot ? "Share trace" : "Share run"}
      description={`Anyone with the link can read ${
        isRoot ? "all runs of this trace" : "this run and its descendants"
      }, including inputs, outputs and attachments, without an API key.`}
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          {token === undefined ? (
            <Button look="primary" disabled={!share.data || creating.isPending} onClick={() => creating.mutate()}>
              Create link
            </Button>
          ) : (
            <Button look="danger" disabled={revoking.isPending} onClick={() => revoking.mutate()}>
              Revoke link
            </Button>
          )}
        </>
      }
    >
      {share.isPending && <SkeletonRows label="Loading link" rows={1} />}
      {token !== undefined && <CodeBlock code={`${API_URL}/public/${token}/r`} label="Copy link" />}
      <FormError error={share.error ?? creating.error ?? revoking.error} />
    </Dialog>
  );
}
