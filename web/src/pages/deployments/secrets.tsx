import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Deployment, Secret } from "../../../../src/control-plane/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { FormError, submits } from "../../ui/form/field.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { deploymentsKey, replaceSecrets } from "./queries.ts";
import { SecretRows } from "./secret-rows.tsx";

/** Lists the names of the secrets. Saving replaces all secrets together, because the values are never shown. */
export function Secrets({ deployment }: { deployment: Deployment }) {
  const [draft, setDraft] = useState<readonly Secret[]>();
  const names = deployment.secrets.map(({ name }) => name);
  if (draft) return <Replace id={deployment.id} draft={draft} onChange={setDraft} onDone={() => setDraft(undefined)} />;
  const replace = (
    <Button
      onClick={() =>
        setDraft(names.length > 0 ? names.map((name) => ({ name, value: "" })) : [{ name: "", value: "" }])
      }
    >
      {names.length > 0 ? "Replace secrets…" : "Add secrets…"}
    </Button>
  );
  if (names.length === 0)
    return (
      <EmptyState title="No secrets" action={replace}>
        Secrets are stored encrypted and passed to the deployment as environment variables.
      </EmptyState>
    );
  return (
    <div className="grid max-w-2xl gap-3">
      <ul aria-label="Secrets" className="divide-y divide-line rounded-lg border border-line">
        {names.map((name) => (
          <li key={name} className="flex justify-between gap-4 px-3 py-1.5 font-mono text-table">
            <span className="truncate">{name}</span>
            <span role="img" className="text-text-3" aria-label="hidden">
              ••••••••
            </span>
          </li>
        ))}
      </ul>
      <div>{replace}</div>
    </div>
  );
}

function Replace({
  id,
  draft,
  onChange,
  onDone,
}: {
  id: string;
  draft: readonly Secret[];
  onChange(draft: readonly Secret[]): void;
  onDone(): void;
}) {
  const client = useQueryClient();
  const replacing = useMutation({
    mutationFn: () => replaceSecrets(id, draft),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: deploymentsKey });
      toast("Secrets replaced. Deploying a revision with the new secrets.");
      onDone();
    },
  });
  return (
    <form onSubmit={submits(() => replacing.mutate())} className="grid max-w-2xl gap-4">
      <p className="text-body text-text-2">
        Saving replaces all secrets and deploys a new revision. Enter every value, because saved values are never shown.
        Secrets that you do not list are deleted.
      </p>
      <SecretRows secrets={draft} onChange={onChange} />
      <FormError error={replacing.error} />
      <div className="flex gap-2">
        <Button type="submit" look="primary" disabled={replacing.isPending}>
          Replace all secrets
        </Button>
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </form>
  );
}
