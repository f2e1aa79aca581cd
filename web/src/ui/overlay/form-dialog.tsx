import { type ReactNode, useId } from "react";
import { Button, type ButtonProps } from "../button.tsx";
import { FormError, submits } from "../form/field.tsx";
import { Dialog } from "./dialog.tsx";

/** A modal dialog with a form. If the submission fails, the dialog stays open and shows the error. */
export function FormDialog({
  title,
  description,
  action,
  look = "primary",
  disabled,
  error,
  children,
  onSubmit,
  onClose,
}: {
  title: string;
  description?: ReactNode;
  action: ReactNode;
  look?: ButtonProps["look"];
  disabled: boolean;
  error?: Error | string | null;
  children: ReactNode;
  onSubmit(): void;
  onClose(): void;
}) {
  const id = useId();
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      description={description}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form={id} type="submit" look={look} disabled={disabled}>
            {action}
          </Button>
        </>
      }
    >
      <form id={id} onSubmit={submits(onSubmit)} className="grid grid-cols-1 gap-4">
        {children}
        <FormError error={error} />
      </form>
    </Dialog>
  );
}
