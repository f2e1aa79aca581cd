import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { bytes } from "../../ui/format.ts";
import { Dialog } from "../../ui/overlay/dialog.tsx";
import { Progress } from "../../ui/progress.tsx";
import type { UploadStage } from "./deploy-folder.ts";
import { projectError, type SourceDraft, SourceFields, type SourceKind } from "./source-fields.tsx";

const KINDS: readonly { kind: SourceKind; label: string }[] = [
  { kind: "folder", label: "Folder" },
  { kind: "git", label: "Git repository" },
  { kind: "image", label: "Image" },
];

/** Reports the progress of a submitted form and aborts it. */
export interface SubmitOptions {
  onStage(stage: UploadStage): void;
  signal: AbortSignal;
}

/** A form for the source of a revision. It stays open and shows the error if the request fails. */
export function SourceDialog({
  title,
  action,
  draft,
  onChange,
  kinds = KINDS.map(({ kind }) => kind),
  isNew = false,
  before,
  children,
  onSubmit,
  onClose,
}: {
  title: string;
  /** The label of the submit button. */
  action: string;
  draft: SourceDraft;
  onChange(draft: SourceDraft): void;
  kinds?: readonly SourceKind[];
  isNew?: boolean;
  before?: ReactNode;
  children?: ReactNode;
  onSubmit(options: SubmitOptions): Promise<void>;
  onClose(): void;
}) {
  const [state, setState] = useState<{ isBusy?: boolean; stage?: UploadStage; error?: string }>({});
  const abort = useRef<AbortController>(undefined);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    abort.current = new AbortController();
    const { signal } = abort.current;
    setState({ isBusy: true });
    try {
      await onSubmit({ signal, onStage: (stage) => setState({ isBusy: true, stage }) });
    } catch (error) {
      setState(signal.aborted ? {} : { error: (error as Error).message });
    }
  };
  const close = () => {
    abort.current?.abort();
    onClose();
  };
  const isInvalid = draft.kind === "folder" && (draft.files.length === 0 || projectError(draft) !== undefined);
  return (
    <Dialog
      open
      onClose={close}
      title={title}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button form="source" type="submit" look="primary" disabled={state.isBusy || isInvalid}>
            {action}
          </Button>
        </>
      }
    >
      <form id="source" onSubmit={(event) => void submit(event)} className="grid gap-4">
        {before}
        {kinds.length > 1 && (
          <fieldset className="flex flex-wrap gap-x-5 gap-y-1">
            <legend className="mb-1 font-medium text-table">Source</legend>
            {KINDS.filter(({ kind }) => kinds.includes(kind)).map(({ kind, label }) => (
              <label key={kind} className="flex items-center gap-2 text-body">
                <input
                  type="radio"
                  name="kind"
                  className="size-3.5 accent-accent"
                  checked={draft.kind === kind}
                  onChange={() => onChange({ ...draft, kind })}
                />
                {label}
              </label>
            ))}
          </fieldset>
        )}
        <SourceFields draft={draft} onChange={onChange} isNew={isNew} />
        {children}
        {state.stage && <Progress {...state.stage} format={bytes} onCancel={() => abort.current?.abort()} />}
        {state.error && (
          <p role="alert" className="text-error text-table">
            {state.error}
          </p>
        )}
      </form>
    </Dialog>
  );
}
