import { useQueryClient } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { OAuthProvider } from "../../../../src/access/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Input } from "../../ui/field.tsx";
import { toast } from "../../ui/toast.tsx";
import { beginFlow, connectionsKey, waitForFlow } from "./queries.ts";

/** Sends the user to the provider, in a tab of its own, and waits until they are back. */
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
      const flow = await beginFlow(provider_id, { scopes: scopes.split(/[\s,]+/).filter(Boolean), is_default });
      setUrl(flow.url);
      if (tab) {
        tab.opener = null;
        tab.location.href = flow.url;
      }
      const isConnected = await waitForFlow(flow.auth_id, signal);
      await client.invalidateQueries({ queryKey: connectionsKey });
      setUrl(undefined);
      if (!isConnected) return setError(`${name} gave no access, or too much time has passed.`);
      toast(`The account at ${name} is connected.`);
      onClose();
    } catch (failure) {
      tab?.close();
      setUrl(undefined);
      if (!signal.aborted) setError((failure as Error).message);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setError(undefined);
    // Opened by the click itself: browsers stop tabs that open later.
    void connect(window.open("", "_blank"));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Connect an account at ${name}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button form="connect" type="submit" look="primary" disabled={url !== undefined}>
            <ExternalLink size={14} aria-hidden /> {url ? "Waiting …" : "Go there"}
          </Button>
        </>
      }
    >
      <form id="connect" onSubmit={submit} className="grid gap-4">
        <Field label="Scopes" hint="With spaces between them; empty for what the provider gives by itself.">
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
          label="Make it the default"
          hint="Agents get this account where they ask for no other."
          checked={is_default}
          disabled={url !== undefined}
          onChange={({ target }) => setDefault(target.checked)}
        />
        {url && (
          <p role="status" className="text-body text-text-2">
            Waiting until you have agreed in the other tab.{" "}
            <a href={url} target="_blank" rel="noreferrer" className="rounded text-accent-text underline">
              Open it again
            </a>
          </p>
        )}
        {error && (
          <p role="alert" className="text-error text-table">
            {error}
          </p>
        )}
      </form>
    </Dialog>
  );
}
