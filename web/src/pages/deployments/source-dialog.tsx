import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { bytes } from "../../ui/format.ts";
import { Progress } from "../../ui/progress.tsx";
import type { Stage } from "./bring-source.ts";
import { type SourceDraft, SourceFields, type SourceKind, whyNoProject } from "./source-fields.tsx";

const KINDS: readonly { kind: SourceKind; label: string }[] = [
  { kind: "folder", label: "Folder" },
  { kind: "git", label: "Git repository" },
  { kind: "image", label: "Image" },
];

/** How the work of a submitted form is reported, and ended before its time. */
export interface Reporting {
  onStage(stage: Stage): void;
  signal: AbortSignal;
}

/** A form for a source, which stays with the reason when what it asks for fails. */
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
  /** The verb on the button. */
  action: string;
  draft: SourceDraft;
  onChange(draft: SourceDraft): void;
  kinds?: readonly SourceKind[];
  isNew?: boolean;
  before?: ReactNode;
  children?: ReactNode;
  onSubmit(reporting: Reporting): Promise<void>;
  onClose(): void;
}) {
  const [state, setState] = useState<{ isBusy?: boolean; stage?: Stage; error?: string }>({});
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
  const cannot = draft.kind === "folder" && (draft.files.length === 0 || whyNoProject(draft) !== undefined);
  return (
    <Dialog
      open
      onClose={close}
      title={title}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button form="source" type="submit" look="primary" disabled={state.isBusy || cannot}>
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
