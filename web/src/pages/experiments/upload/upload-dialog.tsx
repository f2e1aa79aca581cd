import { useQueryClient } from "@tanstack/react-query";
import { FileUp } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/code-block.tsx";
import { bytes } from "../../../ui/format.ts";
import { Dialog } from "../../../ui/overlay/dialog.tsx";
import { MAX_FILE_BYTES } from "./result-file.ts";
import { UploadItem } from "./upload-item.tsx";
import { addUploads, uploadCommand, useUploadList } from "./uploads.ts";

/**
 * Upload dialog. Opens when `open` is called or when files are dropped on the page.
 *
 * @param dataset_name default dataset of files that do not state one
 */
export function useUploads(dataset_name?: string): { open(): void; dialog: ReactNode } {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const add = (files: File[]) => {
    addUploads(files, client, dataset_name);
    setOpen(true);
  };
  const isOver = useFileDrop(add);
  return {
    open: () => setOpen(true),
    dialog: (
      <>
        {isOver && !isOpen && <DropOverlay />}
        <UploadDialog open={isOpen} onClose={() => setOpen(false)} isOver={isOver} onFiles={add} />
      </>
    ),
  };
}

const DropOverlay = () => (
  <div className="pointer-events-none fixed inset-0 z-40 grid place-items-center bg-scrim p-6">
    <p className="rounded-xl border border-line bg-raised px-6 py-4 font-medium shadow-float">Drop files to upload</p>
  </div>
);

function UploadDialog({
  open,
  onClose,
  isOver,
  onFiles,
}: {
  open: boolean;
  onClose(): void;
  isOver: boolean;
  onFiles(files: File[]): void;
}) {
  const uploads = useUploadList();
  const input = useRef<HTMLInputElement>(null);
  return (
    <Dialog
      open={open}
      onClose={onClose}
      isWide={uploads.some(({ content }) => content)}
      title="Upload experiments"
      description="Each file is stored completely or not at all. Uploads continue after you close this dialog."
      footer={
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <div className="grid gap-4 pt-1">
        <div
          className={`grid justify-items-center gap-2 rounded-lg border border-dashed px-4 text-center ${uploads.length > 0 ? "py-2" : "py-6"} ${isOver ? "border-accent bg-selected" : "border-line-strong bg-sunken"}`}
        >
          <FileUp size={20} className="text-text-3" aria-hidden />
          <p className="text-table text-text-2">
            Drop JSON, JSONL or CSV files here. Each file contains the results of one experiment.
          </p>
          <Button onClick={() => input.current?.click()}>Choose files</Button>
          <input
            ref={input}
            type="file"
            multiple
            accept=".json,.jsonl,.ndjson,.csv,application/json,text/csv"
            aria-label="Files to upload"
            className="sr-only"
            tabIndex={-1}
            onChange={(event) => {
              onFiles([...(event.target.files ?? [])]);
              event.target.value = "";
            }}
          />
        </div>
        {uploads.length > 0 && (
          <ul aria-label="Uploads" className="grid gap-3">
            {uploads.map((upload) => (
              <UploadItem key={upload.id} upload={upload} onLeave={onClose} />
            ))}
          </ul>
        )}
        <div className="grid gap-1.5 text-table text-text-2">
          <p>
            Use the command line to upload lm-evaluation-harness files, promptfoo files, and JSONL or CSV files larger
            than {bytes(MAX_FILE_BYTES)}:
          </p>
          <CodeBlock code={uploadCommand("results.json")} />
        </div>
      </div>
    </Dialog>
  );
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;

/**
 * Accepts files that are dropped anywhere on the page. Without this handler, the browser would navigate to a dropped file.
 *
 * @returns whether files are being dragged over the page
 */
function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      // dragleave also fires between elements. relatedTarget is null only when the pointer leaves the page.
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      latest.current([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}
