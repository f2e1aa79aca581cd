import { type ReactNode, useState } from "react";
import { Button } from "../button.tsx";
import { FormError } from "../form/field.tsx";
import { Dialog } from "./dialog.tsx";

/** Confirms an action that cannot be undone. Stays open and shows the error if the action fails. */
export function Confirm({
  open,
  onClose,
  title,
  action,
  children,
  onConfirm,
}: {
  open: boolean;
  onClose(): void;
  title: string;
  action: string;
  children: ReactNode;
  onConfirm(): Promise<unknown>;
}) {
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const close = () => {
    // Clears the error for the next use.
    setState({});
    onClose();
  };
  const confirm = async () => {
    setState({ busy: true });
    try {
      await onConfirm();
      close();
    } catch (error) {
      setState({ error: (error as Error).message });
    }
  };
  return (
    <Dialog
      open={open}
      onClose={close}
      title={title}
      description={children}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="danger" disabled={state.busy} onClick={confirm}>
            {action}
          </Button>
        </>
      }
    >
      {state.error && <FormError error={state.error} />}
    </Dialog>
  );
}
