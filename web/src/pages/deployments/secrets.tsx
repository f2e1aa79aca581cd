import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Deployment, Secret } from "../../../../src/control-plane/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { toast } from "../../ui/toast.tsx";
import { deploymentsKey, replaceSecrets } from "./queries.ts";
import { SecretRows } from "./secret-rows.tsx";

/** Names of the secrets; they are replaced, all of them, and never shown. */
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
      {names.length > 0 ? "Replace them …" : "Add secrets …"}
    </Button>
  );
  if (names.length === 0)
    return (
      <EmptyState title="No secrets" action={replace}>
        Secrets are environment variables of the deployment, kept encrypted.
      </EmptyState>
    );
  return (
    <div className="grid max-w-2xl gap-3">
      <ul aria-label="Names of the secrets" className="divide-y divide-line rounded-lg border border-line">
        {names.map((name) => (
          <li key={name} className="flex justify-between gap-4 px-3 py-1.5 font-mono text-table">
            <span className="truncate">{name}</span>
            <span role="img" className="text-text-3" aria-label="not shown">
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
      toast("The secrets are replaced. A revision with them is under way.");
      onDone();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    replacing.mutate();
  };
  return (
    <form onSubmit={submit} className="grid max-w-2xl gap-4">
      <p className="text-body text-text-2">
        What you save takes the place of all secrets: a name that you leave out is gone, and each needs its value anew,
        as values are not shown. A new revision with them is deployed at once.
      </p>
      <SecretRows secrets={draft} onChange={onChange} />
      {replacing.error && (
        <p role="alert" className="text-error text-table">
          {replacing.error.message}
        </p>
      )}
      <div className="flex gap-2">
        <Button type="submit" look="primary" disabled={replacing.isPending}>
          Replace all secrets
        </Button>
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </form>
  );
}
