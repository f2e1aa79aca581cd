import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { count } from "../../../ui/format.ts";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { deleteThreads } from "../queries.ts";

/** Number of the selected threads, with a button that deletes them. */
export function ThreadSelection({ chosen, onClear }: { chosen: ReadonlySet<string>; onClear(): void }) {
  const client = useQueryClient();
  /** IDs of the threads to delete. The selection shrinks when the list is refetched during the deletion. */
  const [deleting, setDeleting] = useState<readonly string[]>();
  const [done, setDone] = useState(0);
  const total = deleting?.length ?? 0;
  return (
    <div className="ml-auto flex items-center gap-2">
      <span className="text-table text-text-2">{count(chosen.size)} selected</span>
      <Button look="quiet" onClick={onClear}>
        Clear
      </Button>
      <Button look="danger" onClick={() => setDeleting([...chosen])}>
        Delete
      </Button>
      <Confirm
        open={deleting !== undefined}
        onClose={() => setDeleting(undefined)}
        title={total === 1 ? "Delete 1 thread?" : `Delete ${count(total)} threads?`}
        action="Delete"
        progress={<Progress label="Deleting threads" done={done} total={total} />}
        onConfirm={async (signal) => {
          setDone(0);
          const deleted = await deleteThreads(client, deleting ?? [], { onProgress: setDone, signal });
          if (!signal.aborted) onClear();
          toast(deleted === 1 ? "1 thread deleted" : `${count(deleted)} threads deleted`);
        }}
      >
        Active runs are stopped. Runs, history and crons are deleted, too. This cannot be undone.
      </Confirm>
    </div>
  );
}
