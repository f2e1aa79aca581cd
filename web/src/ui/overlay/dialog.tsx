import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { BLOCKS_SHORTCUTS } from "../../frame/keys.ts";
import { Button } from "../button.tsx";
import { classes, isNarrow, useMedia } from "../layout.tsx";
import { isOnToast } from "./toast.tsx";

export interface DialogProps {
  open: boolean;
  onClose(): void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  /** Buttons at the bottom. The main button is last. */
  footer?: ReactNode;
  /** Whether the content needs more width than a short form. */
  isWide?: boolean;
}

/** Keeps a dialog open when the user clicks a toast outside of the dialog. */
const keepOnToast = (event: CustomEvent<{ originalEvent: Event }>): void => {
  if (isOnToast(event.detail.originalEvent.target)) event.preventDefault();
};

const SCRIM = "fixed inset-0 z-40 animate-appear bg-scrim";

/** A modal dialog. Esc or a click outside closes it. */
export function Dialog(props: DialogProps) {
  return (
    <Radix.Root open={props.open} onOpenChange={(open) => !open && props.onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={SCRIM} />
        <Radix.Content
          {...(props.description ? {} : { "aria-describedby": undefined })}
          {...BLOCKS_SHORTCUTS}
          onInteractOutside={keepOnToast}
          className={classes(
            "fixed top-[12vh] left-1/2 z-50 flex max-h-[80vh] -translate-x-1/2 animate-appear flex-col rounded-xl border border-line bg-raised shadow-float",
            props.isWide ? "w-[min(760px,calc(100vw-24px))]" : "w-[min(480px,calc(100vw-24px))]",
          )}
        >
          <Head {...props} />
          {props.children && <div className="overflow-y-auto px-5 pb-4">{props.children}</div>}
          {props.footer && (
            <div className="flex justify-end gap-2 rounded-b-xl border-line border-t bg-sunken px-5 py-3">
              {props.footer}
            </div>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/**
 * A panel that slides in from the right. With `modal={false}`, the page behind stays usable and keeps the focus, so that j and k move
 * through table rows. It starts below the header of the page, whose actions stay usable, except on narrow screens.
 */
export function Sheet({
  width = 640,
  modal = true,
  actions,
  ...props
}: DialogProps & { width?: number; modal?: boolean; actions?: ReactNode }) {
  const narrow = useMedia(isNarrow);
  const top = modal || narrow ? 0 : document.querySelector("main")?.getBoundingClientRect().top;
  return (
    <Radix.Root open={props.open} modal={modal} onOpenChange={(open) => !open && props.onClose()}>
      <Radix.Portal>
        {modal && <Radix.Overlay className={SCRIM} />}
        <Radix.Content
          {...(props.description ? {} : { "aria-describedby": undefined })}
          onOpenAutoFocus={(event) => !modal && event.preventDefault()}
          onInteractOutside={(event) => (modal ? keepOnToast(event) : event.preventDefault())}
          style={{ width: `min(${width}px, 100vw)`, top }}
          className="fixed inset-y-0 right-0 z-50 flex animate-slide flex-col border-line border-l bg-raised shadow-float"
        >
          <Head {...props} actions={actions} line />
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{props.children}</div>
          {props.footer && (
            <div className="flex justify-end gap-2 border-line border-t bg-sunken px-5 py-3">{props.footer}</div>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function Head({ title, description, actions, line }: Partial<DialogProps> & { actions?: ReactNode; line?: boolean }) {
  return (
    <div className={classes("flex items-start gap-3 px-5 pt-4 pb-3", line && "border-line border-b")}>
      <div className="min-w-0 flex-1">
        <Radix.Title className="font-semibold text-body">{title}</Radix.Title>
        {description && <Radix.Description className="mt-0.5 text-table text-text-2">{description}</Radix.Description>}
      </div>
      {actions}
      <Radix.Close asChild>
        <Button look="quiet" small square aria-label="Close">
          <X size={15} />
        </Button>
      </Radix.Close>
    </div>
  );
}
