import { DatabaseZap, MoreHorizontal, Share2, Terminal } from "lucide-react";
import { useState } from "react";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { useCredentials } from "../../../api/credentials.ts";
import { API_URL } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { copyAndConfirm } from "../../../ui/copy-text.ts";
import { Menu } from "../../../ui/overlay/menu.tsx";
import { ThreadLink } from "../../threads/thread-link.tsx";
import { AddToDataset } from "./add-to-dataset.tsx";
import { AddToQueue } from "./add-to-queue.tsx";
import { ShareDialog } from "./share.tsx";

export function RunActions({ run }: { run: ExperimentRun }) {
  const { key } = useCredentials();
  const [open, setOpen] = useState<"dataset" | "share">();
  const copyCurl = () => {
    const header = key ? ' \\\n  -H "x-api-key: $LANGSMITH_API_KEY"' : "";
    copyAndConfirm(`curl -s ${API_URL}/api/v1/runs/${run.id}${header}`, "Command copied");
  };
  return (
    <>
      <ThreadLink metadata={(run.extra?.metadata ?? {}) as Record<string, unknown>} />
      <Button small onClick={() => setOpen("dataset")}>
        <DatabaseZap size={13} aria-hidden /> Add to dataset
      </Button>
      <AddToQueue run_id={run.id} />
      <Button small onClick={() => setOpen("share")}>
        <Share2 size={13} aria-hidden /> {run.share_token ? "Shared" : "Share"}
      </Button>
      <Menu items={[{ label: "Copy as curl", icon: <Terminal size={14} />, onSelect: copyCurl }]}>
        <Button look="quiet" small square aria-label="Actions for the run">
          <MoreHorizontal size={15} />
        </Button>
      </Menu>
      {open === "dataset" && (
        <AddToDataset inputs={run.inputs} outputs={run.outputs} run_id={run.id} onClose={() => setOpen(undefined)} />
      )}
      {open === "share" && <ShareDialog run={run} onClose={() => setOpen(undefined)} />}
    </>
  );
}
