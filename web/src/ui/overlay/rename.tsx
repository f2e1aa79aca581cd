import { type FormEvent, useId, useState } from "react";
import { Button } from "../button.tsx";
import { Field, Input } from "../form/field.tsx";
import { Dialog } from "./dialog.tsx";

/** Asks for a new name. Stays open and shows the error if the server rejects the name. */
export function Rename({
  title,
  name,
  onClose,
  onRename,
}: {
  title: string;
  /** The current name. */
  name: string;
  onClose(): void;
  onRename(name: string): Promise<unknown>;
}) {
  const form = useId();
  const [newName, setNewName] = useState(name);
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      await onRename(newName.trim());
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
          <Button look="primary" type="submit" form={form} disabled={state.busy || newName.trim() === ""}>
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
              value={newName}
              onChange={(event) => setNewName(event.target.value)}
            />
          )}
        </Field>
      </form>
    </Dialog>
  );
}
