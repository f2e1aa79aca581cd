import { type ReactNode, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";

/** Asks before something that cannot be undone. It stays open, with the reason, when that fails. */
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
  /** The question. */
  title: string;
  /** The verb on the button: "Revoke". */
  action: string;
  /** What happens then. */
  children: ReactNode;
  onConfirm(): Promise<unknown>;
}) {
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const close = () => {
    // The next question is another one, of which nothing has failed yet.
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
      {state.error && (
        <p role="alert" className="text-error text-table">
          {state.error}
        </p>
      )}
    </Dialog>
  );
}
