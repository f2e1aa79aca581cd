import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { count } from "../../../ui/format.ts";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { Menu } from "../../../ui/overlay/menu.tsx";
import { Rename } from "../../../ui/overlay/rename.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../queries.ts";

export function DatasetMenu({ dataset }: { dataset: Dataset }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<"rename" | "delete">();
  const close = () => setOpen(undefined);
  const { id, name, example_count, session_count } = dataset;
  return (
    <>
      <Menu
        items={[
          { label: "Rename", icon: <Pencil size={14} />, onSelect: () => setOpen("rename") },
          { label: "Delete", icon: <Trash2 size={14} />, danger: true, onSelect: () => setOpen("delete") },
        ]}
      >
        <Button square aria-label="Dataset actions">
          <MoreHorizontal size={15} />
        </Button>
      </Menu>
      {open === "rename" && (
        <Rename
          title="Rename dataset"
          name={name}
          onClose={close}
          onRename={async (given) => {
            await api.patch(`/api/v1/datasets/${id}`, { name: given });
            await client.invalidateQueries({ queryKey: EXPERIMENTS });
          }}
        />
      )}
      <Confirm
        open={open === "delete"}
        onClose={close}
        title={`Delete dataset “${name}”?`}
        action="Delete"
        onConfirm={async () => {
          await api.delete(`/api/v1/datasets/${id}`);
          // Leaves the page before the queries are invalidated, because refetching the deleted dataset would fail.
          await navigate({ to: "/experiments" });
          toast("Dataset deleted");
          await client.invalidateQueries({ queryKey: EXPERIMENTS });
        }}
      >
        The dataset is deleted with its examples ({count(example_count)}) and its experiments ({count(session_count)}),
        including their runs and feedback. This cannot be undone.
      </Confirm>
    </>
  );
}
