import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Copy, DatabaseZap, Ellipsis, Trash2 } from "lucide-react";
import { useState } from "react";
import type { ThreadStatus as StatusName, Thread } from "../../../../src/agent-server/contract/records.ts";
import { api, send } from "../../api/request.ts";
import { useMay } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { Menu } from "../../ui/overlay/menu.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { Status } from "../../ui/status.tsx";
import { AddThread } from "./add-thread.tsx";
import { threadKey, threadsKey } from "./queries.ts";
import type { ThreadModel } from "./use-thread.ts";

export function ThreadMenu({ model }: { model: ThreadModel }) {
  const { thread_id } = model.thread;
  const mayAdd = useMay("experiments") === true;
  const client = useQueryClient();
  const navigate = useNavigate();
  const [adding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const copy = async () => {
    try {
      const copied = await api.post<Thread>(`/threads/${thread_id}/copy`);
      await navigate({ to: "/threads/$thread_id", params: { thread_id: copied.thread_id }, search: {} });
      toast("Thread copied with its history. Runs are not copied.");
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };
  return (
    <>
      <Menu
        items={[
          ...(mayAdd
            ? [
                {
                  label: "Add to dataset",
                  hint: "Creates an example from the state that is currently shown and the input that led to it.",
                  icon: <DatabaseZap size={14} />,
                  onSelect: () => setAdding(true),
                },
              ]
            : []),
          {
            label: "Copy thread",
            hint: "Creates a new thread with the same state and history.",
            icon: <Copy size={14} />,
            onSelect: () => void copy(),
          },
          {
            label: "Delete thread",
            hint: "Deletes the thread with its runs, history and crons.",
            icon: <Trash2 size={14} />,
            danger: true,
            onSelect: () => setDeleting(true),
          },
        ]}
      >
        <Button square aria-label="Thread actions">
          <Ellipsis size={15} />
        </Button>
      </Menu>
      {adding && <AddThread model={model} onClose={() => setAdding(false)} />}
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title="Delete this thread?"
        action="Delete"
        onConfirm={async () => {
          await send("DELETE", `/threads/${thread_id}`);
          await navigate({ to: "/threads", search: {} });
          client.removeQueries({ queryKey: threadKey(thread_id) });
          await client.invalidateQueries({ queryKey: threadsKey });
          toast("Thread deleted");
        }}
      >
        The thread's active runs are stopped, and all its runs, history and crons are deleted. This cannot be undone.
      </Confirm>
    </>
  );
}

/** Status of a thread. An open interrupt is shown as "Needs your input", because "interrupted" suggests a failure. */
export const ThreadStatus = ({ status, needsInput }: { status: StatusName; needsInput: boolean }) =>
  needsInput ? <Status status="Needs your input" kind="interrupted" /> : <Status status={status} />;
