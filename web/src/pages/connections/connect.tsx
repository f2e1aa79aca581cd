import { useQueryClient } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { OAuthProvider } from "../../../../src/access/contract/records.ts";
import { Checkbox, Field, Input } from "../../ui/form/field.tsx";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { connectionsKey, startFlow, waitForFlow } from "./queries.ts";

/** Opens a provider's authorization page in a new tab and waits for the result. */
export function Connect({ provider, onClose }: { provider: OAuthProvider; onClose(): void }) {
  const { provider_id, name } = provider;
  const client = useQueryClient();
  const [scopes, setScopes] = useState("");
  const [is_default, setDefault] = useState(true);
  const [url, setUrl] = useState<string>();
  const [error, setError] = useState<string>();
  const abort = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    abort.current = controller;
    return () => controller.abort();
  }, []);

  const connect = async (tab: Window | null) => {
    const { signal } = abort.current;
    try {
      const flow = await startFlow(provider_id, { scopes: scopes.split(/[\s,]+/).filter(Boolean), is_default });
      setUrl(flow.url);
      if (tab) {
        tab.opener = null;
        tab.location.href = flow.url;
      }
      const isConnected = await waitForFlow(flow.auth_id, signal);
      await client.invalidateQueries({ queryKey: connectionsKey });
      setUrl(undefined);
      if (!isConnected) return setError(`Authorization with ${name} failed or timed out. Try again.`);
      toast(`${name} account connected`);
      onClose();
    } catch (failure) {
      tab?.close();
      setUrl(undefined);
      if (!signal.aborted) setError((failure as Error).message);
    }
  };
  const submit = () => {
    setError(undefined);
    // Opens the tab synchronously, because browsers block tabs that open after the click event.
    void connect(window.open("", "_blank"));
  };
  return (
    <FormDialog
      title={`Connect ${name} account`}
      action={
        <>
          <ExternalLink size={14} aria-hidden /> {url ? "Waiting…" : `Continue to ${name}`}
        </>
      }
      disabled={url !== undefined}
      error={error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Scopes" hint="Separate scopes with spaces. Leave empty for the provider's default scopes.">
        {(props) => (
          <Input
            {...props}
            autoFocus
            value={scopes}
            disabled={url !== undefined}
            onChange={({ target }) => setScopes(target.value)}
            className="font-mono"
          />
        )}
      </Field>
      <Checkbox
        label="Use as default"
        hint="Agents use the default account unless they request another account."
        checked={is_default}
        disabled={url !== undefined}
        onChange={({ target }) => setDefault(target.checked)}
      />
      {url && (
        <p role="status" className="text-body text-text-2">
          Waiting for authorization in the other tab.{" "}
          <a href={url} target="_blank" rel="noreferrer" className="rounded text-accent-text underline">
            Reopen the authorization page
          </a>
        </p>
      )}
    </FormDialog>
  );
}
