import { toast } from "./overlay/toast.tsx";

/**
 * Copies a text to the clipboard.
 *
 * @throws Error if the browser refuses
 */
export async function copyText(text: string): Promise<void> {
  // Pages that are loaded over plain HTTP from another host have no `clipboard`.
  if (navigator.clipboard as Clipboard | undefined) return navigator.clipboard.writeText(text);
  const focused = document.activeElement as HTMLElement | null;
  const area = document.createElement("textarea");
  area.value = text;
  // A dialog takes the focus back from elements outside of it.
  (focused?.closest("[role=dialog]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!isCopied) throw new Error("The browser did not copy the text.");
}

/** Copies a text and shows a toast, or the error. */
export const copyAndConfirm = (text: string, confirmation: string): Promise<void> =>
  copyText(text).then(
    () => toast(confirmation),
    (error: Error) => toast(error.message, { error: true }),
  );
