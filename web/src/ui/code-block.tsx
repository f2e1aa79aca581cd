import { Check, Copy as CopyIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "./button.tsx";
import { copyText } from "./copy-text.ts";
import { toast } from "./overlay/toast.tsx";

const CONFIRMATION_MS = 1_500;

/** @param text the text, or a function that returns it for values that are expensive to format */
export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), CONFIRMATION_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <Button
      look="quiet"
      small
      square
      aria-label={copied ? "Copied" : label}
      onClick={() =>
        copyText(typeof text === "string" ? text : text()).then(
          () => setCopied(true),
          (error: Error) => toast(error.message, { error: true }),
        )
      }
    >
      {copied ? <Check size={14} className="text-success" /> : <CopyIcon size={14} />}
    </Button>
  );
}

export function CodeBlock({ code, label }: { code: string; label?: string }) {
  return (
    <div className="flex items-start gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3">
      <pre className="min-w-0 flex-1 overflow-x-auto whitespace-pre-wrap break-words py-0.5 text-text">{code}</pre>
      <Copy text={code} label={label} />
    </div>
  );
}

/**
 * Shows the last eight characters of an ID, because IDs begin with a timestamp. Hovering shows the complete ID, and the Copy button copies
 * the complete ID.
 */
export function Id({ id }: { id: string }) {
  return (
    <span className="inline-flex items-center gap-0.5 font-mono text-table" title={id}>
      {id.slice(-8)}
      <Copy text={id} label={`Copy ID ${id}`} />
    </span>
  );
}
