import { useState } from "react";
import { Field, Input } from "../form/field.tsx";
import { FormDialog } from "./form-dialog.tsx";

/** Dialog that changes a name. If the server rejects the name, the dialog shows the error. */
export function Rename({
  title,
  name,
  onClose,
  onRename,
}: {
  title: string;
  name: string;
  onClose(): void;
  onRename(name: string): Promise<unknown>;
}) {
  const [newName, setNewName] = useState(name);
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const submit = async () => {
    setState({ busy: true });
    try {
      await onRename(newName.trim());
      onClose();
    } catch (error) {
      setState({ error: (error as Error).message });
    }
  };
  return (
    <FormDialog
      title={title}
      action="Rename"
      disabled={state.busy === true || newName.trim() === ""}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
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
    </FormDialog>
  );
}
