import { type ReactNode, useState } from "react";
import { Button } from "../button.tsx";
import { FormError } from "../form/field.tsx";
import { Dialog } from "./dialog.tsx";

/** Asks for confirmation of an action that cannot be undone. If the action fails, the dialog stays open and shows the error. */
export function Confirm({
  open,
  onClose,
  title,
  action,
  children,
  progress,
  onConfirm,
}: {
  open: boolean;
  onClose(): void;
  title: string;
  action: string;
  children: ReactNode;
  /** Progress of the action, while it is executed. */
  progress?: ReactNode;
  onConfirm(): Promise<unknown>;
}) {
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const close = () => {
    // Clears the error before the dialog opens again.
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
      {state.busy && progress}
      {state.error && <FormError error={state.error} />}
    </Dialog>
  );
}
