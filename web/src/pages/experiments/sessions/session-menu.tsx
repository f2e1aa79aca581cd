import { useQueryClient } from "@tanstack/react-query";
import { Braces, Download, Flag, FlagOff, MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { count } from "../../../ui/format.ts";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { Menu } from "../../../ui/overlay/menu.tsx";
import { Rename } from "../../../ui/overlay/rename.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../queries.ts";
import { useBaseline } from "../use-baseline.ts";
import { ExportDialog } from "./export-dialog.tsx";
import type { ExportFormat } from "./export-results.ts";

export function SessionMenu({
  session,
  isBaseline,
  small,
  onDeleted,
}: {
  session: Session;
  isBaseline: boolean;
  small?: boolean;
  onDeleted?: () => Promise<void>;
}) {
  const client = useQueryClient();
  const setBaseline = useBaseline(session.reference_dataset_id);
  const [open, setOpen] = useState<"rename" | "delete" | ExportFormat>();
  const close = () => setOpen(undefined);
  const dataset_id = session.reference_dataset_id;
  return (
    <>
      <Menu
        items={[
          { label: "Rename", icon: <Pencil size={14} />, onSelect: () => setOpen("rename") },
          ...(dataset_id
            ? [
                isBaseline
                  ? {
                      label: "Remove as baseline",
                      icon: <FlagOff size={14} />,
                      onSelect: () => void setBaseline(null),
                    }
                  : {
                      label: "Set as baseline",
                      hint: "Other experiments are compared with this experiment.",
                      icon: <Flag size={14} />,
                      onSelect: () => void setBaseline(session.id),
                    },
                { label: "Export as CSV", icon: <Download size={14} />, onSelect: () => setOpen("csv") },
                { label: "Export as JSON", icon: <Braces size={14} />, onSelect: () => setOpen("json") },
              ]
            : []),
          { label: "Delete", icon: <Trash2 size={14} />, danger: true, onSelect: () => setOpen("delete") },
        ]}
      >
        <Button look="quiet" small={small} square aria-label={`Actions for ${session.name}`}>
          <MoreHorizontal size={15} />
        </Button>
      </Menu>
      {open === "rename" && (
        <Rename
          title="Rename experiment"
          name={session.name}
          onClose={close}
          onRename={async (name) => {
            await api.patch(`/api/v1/sessions/${session.id}`, { name });
            await client.invalidateQueries({ queryKey: EXPERIMENTS });
          }}
        />
      )}
      <Confirm
        open={open === "delete"}
        onClose={close}
        title={`Delete experiment “${session.name}”?`}
        action="Delete"
        onConfirm={async () => {
          await api.delete(`/api/v1/sessions/${session.id}`);
          // Leaves the page before the deletion, because refetching the deleted experiment would fail.
          await onDeleted?.();
          toast("Experiment deleted");
          await client.invalidateQueries({ queryKey: EXPERIMENTS });
        }}
      >
        The experiment's {session.run_count === null ? "runs" : `${count(session.run_count)} runs`} and their feedback
        are deleted. The dataset's examples are kept. This cannot be undone.
      </Confirm>
      {dataset_id && (open === "csv" || open === "json") && (
        <ExportDialog dataset_id={dataset_id} session={session} format={open} onClose={close} />
      )}
    </>
  );
}
