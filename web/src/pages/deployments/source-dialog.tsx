import { type ReactNode, useRef, useState } from "react";
import { RadioGroup } from "../../ui/form/field.tsx";
import { bytes } from "../../ui/format.ts";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { Progress } from "../../ui/progress.tsx";
import type { UploadStage } from "./deploy-folder.ts";
import { projectError, type SourceDraft, SourceFields, type SourceKind } from "./source-fields.tsx";

const KINDS: readonly { value: SourceKind; label: string }[] = [
  { value: "folder", label: "Folder" },
  { value: "git", label: "Git repository" },
  { value: "image", label: "Image" },
];

/** Progress callback and abort signal of a submission. */
export interface SubmitOptions {
  onStage(stage: UploadStage): void;
  signal: AbortSignal;
}

/** A form for a revision's source. If the request fails, the form stays open and shows the error. */
export function SourceDialog({
  title,
  action,
  draft,
  onChange,
  kinds = KINDS.map(({ value }) => value),
  isNew = false,
  before,
  children,
  onSubmit,
  onClose,
}: {
  title: string;
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
  const submit = async () => {
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
    <FormDialog
      title={title}
      action={action}
      disabled={state.isBusy === true || isInvalid}
      error={state.error}
      onSubmit={() => void submit()}
      onClose={close}
    >
      {before}
      {kinds.length > 1 && (
        <RadioGroup
          inline
          legend="Source"
          value={draft.kind}
          options={KINDS.filter(({ value }) => kinds.includes(value))}
          onChange={(kind) => onChange({ ...draft, kind })}
        />
      )}
      <SourceFields draft={draft} onChange={onChange} isNew={isNew} />
      {children}
      {state.stage && <Progress {...state.stage} format={bytes} onCancel={() => abort.current?.abort()} />}
    </FormDialog>
  );
}
