import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Copy, Ellipsis, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Thread } from "../../../../src/agent-server/contract/records.ts";
import { api, send } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Menu } from "../../ui/menu.tsx";
import { toast } from "../../ui/toast.tsx";
import { threadKey } from "./queries.ts";

/** What is seldom done with a thread: copy it, delete it. */
export function ThreadMenu({ thread_id }: { thread_id: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const copy = async () => {
    try {
      const made = await api.post<Thread>(`/threads/${thread_id}/copy`);
      await navigate({ to: "/threads/$thread_id", params: { thread_id: made.thread_id }, search: {} });
      toast("This is the copy. It has the history, and no runs.");
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };
  return (
    <>
      <Menu
        items={[
          {
            label: "Copy the thread",
            hint: "A new thread with the same state and history.",
            icon: <Copy size={14} />,
            onSelect: () => void copy(),
          },
          {
            label: "Delete the thread",
            hint: "With its runs and its history.",
            icon: <Trash2 size={14} />,
            danger: true,
            onSelect: () => setDeleting(true),
          },
        ]}
      >
        <Button square aria-label="More with this thread">
          <Ellipsis size={15} />
        </Button>
      </Menu>
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title="Delete this thread?"
        action="Delete"
        onConfirm={async () => {
          await send("DELETE", `/threads/${thread_id}`);
          await navigate({ to: "/threads", search: {} });
          client.removeQueries({ queryKey: threadKey(thread_id) });
          await client.invalidateQueries({ queryKey: ["threads"] });
          toast("The thread is deleted.");
        }}
      >
        Its runs are stopped and go with it, and so does its history. This cannot be undone.
      </Confirm>
    </>
  );
}
