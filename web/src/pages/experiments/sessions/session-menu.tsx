import { useQueryClient } from "@tanstack/react-query";
import { Braces, Download, Flag, FlagOff, MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { capitalized, count } from "../../../ui/format.ts";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { Menu, type MenuItem } from "../../../ui/overlay/menu.tsx";
import { Rename } from "../../../ui/overlay/rename.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { TRACES } from "../../traces/queries.ts";
import { EXPERIMENTS } from "../queries.ts";
import { useBaseline } from "../use-baseline.ts";
import { ExportDialog } from "./export-dialog.tsx";
import type { ExportFormat } from "./export-results.ts";
import { useKeptThreads } from "./kept-threads.tsx";

export function SessionMenu({
  session,
  isBaseline,
  small,
  items = [],
  onDeleted,
}: {
  session: Session;
  isBaseline: boolean;
  small?: boolean;
  /** Further actions. */
  items?: readonly MenuItem[];
  onDeleted?: () => Promise<void>;
}) {
  const client = useQueryClient();
  const setBaseline = useBaseline(session.reference_dataset_id);
  const [open, setOpen] = useState<"rename" | "delete" | ExportFormat>();
  const close = () => setOpen(undefined);
  const dataset_id = session.reference_dataset_id;
  const noun = dataset_id ? "experiment" : "project";
  const threads = useKeptThreads(open === "delete" && dataset_id ? [session.id] : []);
  const refetch = () => Promise.all([EXPERIMENTS, TRACES].map((queryKey) => client.invalidateQueries({ queryKey })));
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
          ...items,
          { label: "Delete", icon: <Trash2 size={14} />, danger: true, onSelect: () => setOpen("delete") },
        ]}
      >
        <Button look="quiet" small={small} square aria-label={`Actions for ${session.name}`}>
          <MoreHorizontal size={15} />
        </Button>
      </Menu>
      {open === "rename" && (
        <Rename
          title={`Rename ${noun}`}
          name={session.name}
          onClose={close}
          onRename={async (name) => {
            await api.patch(`/api/v1/sessions/${session.id}`, { name });
            await refetch();
          }}
        />
      )}
      <Confirm
        open={open === "delete"}
        onClose={close}
        title={`Delete ${noun} “${session.name}”?`}
        action="Delete"
        onConfirm={async (signal) => {
          await threads.remove(signal);
          if (signal.aborted) return;
          await api.delete(`/api/v1/sessions/${session.id}`);
          // Leaves the page before the queries are invalidated, because refetching the deleted session would fail.
          await onDeleted?.();
          toast(`${capitalized(noun)} deleted`);
          await refetch();
        }}
      >
        The {noun}'s runs{session.run_count !== null && ` (${count(session.run_count)})`} and their feedback are
        deleted. {dataset_id && "The dataset's examples are kept."} This cannot be undone.
        {threads.choice}
      </Confirm>
      {dataset_id && (open === "csv" || open === "json") && (
        <ExportDialog dataset_id={dataset_id} session={session} format={open} onClose={close} />
      )}
    </>
  );
}
