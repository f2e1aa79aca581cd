import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Sparkles } from "lucide-react";
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { FormError } from "../../../ui/form/field.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { compareSearch } from "../compare/route.ts";
import { EXPERIMENTS } from "../queries.ts";
import { loadSample } from "./load-sample.ts";

export function SampleButton({ look }: { look?: "primary" | "plain" }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [step, setStep] = useState({ done: 0, total: 3 });
  const [abort, setAbort] = useState<AbortController>();
  const loading = useMutation({
    mutationFn: (signal: AbortSignal) => loadSample((done, total) => setStep({ done, total }), signal),
    onSuccess: ({ dataset_id, session_ids }) =>
      navigate({
        to: "/experiments/datasets/$id/compare",
        params: { id: dataset_id },
        search: compareSearch(session_ids, session_ids[0]),
      }),
    onSettled: () => client.invalidateQueries({ queryKey: EXPERIMENTS }),
  });
  if (loading.isPending)
    return (
      <div className="w-full max-w-sm text-left">
        <Progress label="Uploading sample experiments" {...step} onCancel={() => abort?.abort()} />
      </div>
    );
  const start = () => {
    const controller = new AbortController();
    setAbort(controller);
    loading.mutate(controller.signal);
  };
  const error = loading.error?.name === "AbortError" ? undefined : loading.error;
  return (
    <div className="grid justify-items-start gap-2">
      <Button look={look} onClick={start}>
        <Sparkles size={15} aria-hidden /> Load sample
      </Button>
      <FormError error={error} />
    </div>
  );
}
