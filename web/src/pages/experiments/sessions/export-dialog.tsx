import { useEffect, useRef, useState } from "react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { Button } from "../../../ui/button.tsx";
import { FormError } from "../../../ui/form/field.tsx";
import { bytes } from "../../../ui/format.ts";
import { Dialog } from "../../../ui/overlay/dialog.tsx";
import { type ExportFormat, exportResults, saveFile } from "./export-results.ts";

/** Downloads an experiment's results, shows the progress and saves the results as a file. */
export function ExportDialog({
  dataset_id,
  session,
  format,
  onClose,
}: {
  dataset_id: string;
  session: Session;
  format: ExportFormat;
  onClose(): void;
}) {
  const [fetched, setFetched] = useState(0);
  const [error, setError] = useState<Error>();
  const close = useRef(onClose);
  close.current = onClose;
  const { id, name } = session;
  useEffect(() => {
    const abort = new AbortController();
    exportResults(dataset_id, id, format, setFetched, abort.signal).then(
      (blob) => {
        saveFile(blob, `${fileName(name)}.${format}`);
        close.current();
      },
      (failure: Error) => failure.name !== "AbortError" && setError(failure),
    );
    return () => abort.abort();
  }, [dataset_id, id, name, format]);
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Exporting “${name}”`}
      footer={<Button onClick={onClose}>{error ? "Close" : "Cancel"}</Button>}
    >
      {error ? (
        <FormError error={error} />
      ) : (
        <p role="status" className="text-table text-text-2">
          {fetched === 0 ? "Waiting for the server…" : `Downloaded ${bytes(fetched)}`}
        </p>
      )}
    </Dialog>
  );
}

/** Replaces characters that some file systems do not support. */
const fileName = (name: string): string => name.replace(/[^\p{L}\p{N} ._-]+/gu, "_").slice(0, 100) || "experiment";
