import { type ReactNode, useRef, useState } from "react";
import { Button } from "../button.tsx";
import { FormError } from "../form/field.tsx";
import { Dialog } from "./dialog.tsx";
import { toast } from "./toast.tsx";

/**
 * Asks for confirmation of an action that cannot be undone. If the action fails, the dialog stays open and shows the error. Closing the
 * dialog during the action aborts the signal that `onConfirm` received.
 */
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
  onConfirm(signal: AbortSignal): Promise<unknown>;
}) {
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const running = useRef<AbortController>(undefined);
  const close = () => {
    running.current?.abort();
    // Clears the error before the dialog opens again.
    setState({});
    onClose();
  };
  const confirm = async () => {
    running.current = new AbortController();
    const { signal } = running.current;
    setState({ busy: true });
    try {
      await onConfirm(signal);
      if (!signal.aborted) close();
    } catch (error) {
      // After it was closed, the dialog may be open for another action.
      if (signal.aborted) toast((error as Error).message, { error: true });
      else setState({ error: (error as Error).message });
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
