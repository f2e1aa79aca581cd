import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { FormError } from "../../../ui/form/field.tsx";
import { count } from "../../../ui/format.ts";
import { Dialog } from "../../../ui/overlay/dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { TRACES } from "../queries.ts";

interface Repriced {
  traces: number;
  runs: number;
  next: string | null;
}

/** Recomputes the costs of a project with the current prices. Each request takes at most about two seconds. */
export function RecomputeCosts({ project, onClose }: { project: Session; onClose(): void }) {
  const client = useQueryClient();
  const [done, setDone] = useState(0);
  const stop = useRef<AbortController>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const computing = useMutation({
    mutationFn: async () => {
      stop.current = new AbortController();
      const { signal } = stop.current;
      let changed = 0;
      setDone(0);
      for (let after: string | null | undefined; after !== null; ) {
        const body = { session_id: project.id, after };
        const page: Repriced = await api.post("/app/api/reprice", body, { signal });
        changed += page.runs;
        after = page.next;
        setDone((before) => before + page.traces);
      }
      return changed;
    },
    onSuccess: (changed) => {
      toast(`Costs of ${count(changed)} ${changed === 1 ? "run" : "runs"} changed`);
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: TRACES }),
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Recompute costs"
      description="Applies the current prices to all runs of the project. Costs that clients have sent are not changed."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" disabled={computing.isPending} onClick={() => computing.mutate()}>
            Recompute
          </Button>
        </>
      }
    >
      {computing.isPending && <Progress label="Traces" done={done} total={Math.max(done, project.run_count ?? 0)} />}
      <FormError error={computing.error} />
    </Dialog>
  );
}
