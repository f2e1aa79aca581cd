import { type FormEvent, useId, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Field, Input } from "./field.tsx";

/** Asks for another name. It stays open, with the reason, when the server does not take it. */
export function Rename({
  title,
  name,
  onClose,
  onRename,
}: {
  title: string;
  /** The present one. */
  name: string;
  onClose(): void;
  onRename(name: string): Promise<unknown>;
}) {
  const form = useId();
  const [given, setGiven] = useState(name);
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      await onRename(given.trim());
      onClose();
    } catch (error) {
      setState({ error: (error as Error).message });
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form={form} disabled={state.busy || given.trim() === ""}>
            Rename
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="pt-1">
        <Field label="Name" error={state.error}>
          {(props) => (
            <Input
              {...props}
              required
              autoFocus
              maxLength={1_000}
              value={given}
              onChange={(event) => setGiven(event.target.value)}
            />
          )}
        </Field>
      </form>
    </Dialog>
  );
}
