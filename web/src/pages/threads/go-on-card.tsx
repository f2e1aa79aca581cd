import { CirclePause, Play } from "lucide-react";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { counted } from "./steps.ts";

/** A thread that stopped on its way, at a breakpoint, by a cancel or by a failure, and asks nothing. */
export function GoOnCard({ next, onGoOn }: { next: readonly string[]; onGoOn(): Promise<unknown> }) {
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const goOn = async () => {
    setState({ busy: true });
    await onGoOn().catch((error: Error) => setState({ error: error.message }));
  };
  return (
    <section
      aria-label="Stopped on the way"
      className="flex flex-wrap items-center gap-2 rounded-xl border border-line-strong bg-raised px-4 py-2.5"
    >
      <CirclePause size={16} className="shrink-0 text-interrupted" aria-hidden />
      <p className="min-w-0 flex-1">
        Stopped before <span className="font-mono">{counted(next)}</span>.
      </p>
      <Button disabled={state.busy} onClick={() => void goOn()}>
        <Play size={13} aria-hidden /> Go on
      </Button>
      {state.error && (
        <p role="alert" className="w-full text-error text-table">
          {state.error}
        </p>
      )}
    </section>
  );
}
