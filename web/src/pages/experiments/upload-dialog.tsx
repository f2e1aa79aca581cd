import { useQueryClient } from "@tanstack/react-query";
import { FileUp } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useFileDrop } from "../../ui/file-drop.ts";
import { uploadCommand } from "./upload-command.ts";
import { UploadItem } from "./upload-item.tsx";
import { addUploads, useUploadList } from "./uploads.ts";

/** The dialog that uploads files, and what opens it: `open`, or files that are dropped on the page. */
export function useUploads(): { open(): void; dialog: ReactNode } {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const add = (files: File[]) => {
    addUploads(files, client);
    setOpen(true);
  };
  const isOver = useFileDrop(add);
  return {
    open: () => setOpen(true),
    dialog: (
      <>
        {isOver && !isOpen && <DropHere />}
        <UploadDialog open={isOpen} onClose={() => setOpen(false)} isOver={isOver} onFiles={add} />
      </>
    ),
  };
}

const DropHere = () => (
  <div className="pointer-events-none fixed inset-0 z-40 grid place-items-center bg-scrim p-6">
    <p className="rounded-xl border border-line bg-raised px-6 py-4 font-medium shadow-float">
      Drop the results of experiments here
    </p>
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
      title="Upload experiments"
      description="All rows of a file are stored, or none. What was started goes on when this is closed."
      footer={
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <div className="grid gap-4 pt-1">
        <div
          className={`grid justify-items-center gap-2 rounded-lg border border-dashed px-4 py-6 text-center ${isOver ? "border-accent bg-selected" : "border-line-strong bg-sunken"}`}
        >
          <FileUp size={20} className="text-text-3" aria-hidden />
          <p className="text-table text-text-2">Drop JSON files here: each is an experiment, as the API takes it.</p>
          <Button onClick={() => input.current?.click()}>Choose files</Button>
          <input
            ref={input}
            type="file"
            multiple
            accept=".json,application/json"
            aria-label="Files to upload"
            className="sr-only"
            tabIndex={-1}
            onChange={(event) => {
              onFiles([...(event.target.files ?? [])]);
              event.target.value = "";
            }}
          />
        </div>
        <div className="grid gap-1.5 text-table text-text-2">
          <p>
            JSONL and CSV files, and those of lm-evaluation-harness and promptfoo, are taken by the command line. It
            fills in ids and times, and sends files of any size:
          </p>
          <CodeBlock code={uploadCommand("results.jsonl")} />
        </div>
        {uploads.length > 0 && (
          <ul aria-label="Uploads" className="grid gap-3">
            {uploads.map((upload) => (
              <UploadItem key={upload.id} upload={upload} onLeave={onClose} />
            ))}
          </ul>
        )}
      </div>
    </Dialog>
  );
}
