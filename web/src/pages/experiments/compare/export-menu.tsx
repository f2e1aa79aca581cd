import { Download } from "lucide-react";
import { useState } from "react";
import { send } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { copyText } from "../../../ui/copy-text.ts";
import { count } from "../../../ui/format.ts";
import { Menu } from "../../../ui/overlay/menu.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { saveFile } from "../sessions/export-results.ts";
import { csvOf, fetchAllRows, jsonOf, markdownOf } from "./export.ts";
import type { Narrowing } from "./queries.ts";
import { visibleKeys } from "./rows/columns.ts";
import type { Search } from "./search.ts";
import type { View } from "./view.ts";

type Kind = "csv" | "json" | "runs" | "summary";

interface Exporting {
  isBusy: boolean;
  /** Whether the significance of the differences has been computed, so that the summary is complete. */
  hasSummary: boolean;
  start(kind: Kind): Promise<void>;
}

export function useExport(view: View, search: Search, narrowing: Narrowing): Exporting {
  const [isBusy, setBusy] = useState(false);
  const start = async (kind: Kind) => {
    if (isBusy) return;
    setBusy(true);
    try {
      if (kind === "summary") {
        await copyText(markdownOf(view, location.href));
        return toast("Summary copied as Markdown");
      }
      if (kind === "runs") {
        const { session_ids, filters } = narrowing;
        const path = `/api/v1/datasets/${view.dataset_id}/runs`;
        const response = await send("POST", path, { query: { format: "csv" }, body: { session_ids, filters } });
        saveFile(await response.blob(), "runs.csv");
        return toast("Exported the runs to runs.csv");
      }
      const rows = await fetchAllRows(view.dataset_id, narrowing);
      const current = { sessions: view.shown, keys: visibleKeys(view, search), rows };
      const text = kind === "csv" ? csvOf(current) : jsonOf(current);
      saveFile(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }), `comparison.${kind}`);
      toast(`Exported ${count(rows.length)} ${rows.length === 1 ? "example" : "examples"} to comparison.${kind}`);
    } catch (error) {
      toast((error as Error).message, { error: true });
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, hasSummary: view.hasSignificance, start };
}

export const ExportMenu = ({ exporting: { isBusy, hasSummary, start } }: { exporting: Exporting }) => (
  <Menu
    items={[
      { label: "Current view (CSV)", hint: "Shortcut: e", onSelect: () => void start("csv") },
      { label: "Current view (JSON)", onSelect: () => void start("json") },
      { label: "All runs, full text (CSV)", onSelect: () => void start("runs") },
      { label: "Copy summary as Markdown", disabled: !hasSummary, onSelect: () => void start("summary") },
    ]}
  >
    <Button disabled={isBusy}>
      <Download size={14} aria-hidden /> {isBusy ? "Exporting…" : "Export"}
    </Button>
  </Menu>
);
