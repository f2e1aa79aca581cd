import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { signIn, useCredentials } from "../api/credentials.ts";
import { APP_PATH } from "../api/request.ts";
import { sessionQuery } from "../api/session.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { Checkbox, Field, Input } from "../ui/form/field.tsx";
import { ErrorState } from "../ui/states.tsx";

/** Removes the content that index.html shows while the app loads. */
export const removeShell = (): void => document.getElementById("shell")?.remove();

/** Shows the app after the session has loaded, or the sign-in form if the server rejects the credentials. */
export function SignInGate({ children }: { children: ReactNode }) {
  const { refused, key } = useCredentials();
  const session = useQuery({ ...sessionQuery, enabled: !refused });
  const isReady = refused || session.data !== undefined || session.error !== null;
  useEffect(() => {
    if (isReady) removeShell();
  }, [isReady]);
  if (refused) return <SignIn wasRefused={key !== undefined} />;
  if (session.data) return children;
  if (session.error) return <ErrorState error={session.error} retry={() => void session.refetch()} />;
  return null;
}

function SignIn({ wasRefused }: { wasRefused: boolean }) {
  const client = useQueryClient();
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Drops data that was cached for the previous credentials.
    client.clear();
    signIn(key.trim(), keep);
  };
  return (
    <main className="grid min-h-full place-items-center bg-sunken p-4">
      <form
        onSubmit={submit}
        className="grid w-full max-w-md gap-5 rounded-xl border border-line bg-raised p-6 shadow-float"
      >
        <div className="flex items-center gap-2.5">
          <img src={`${APP_PATH}icon.svg`} alt="" width={24} height={24} />
          <h1 className="font-semibold text-title tracking-tight">Sign in to Threadmill</h1>
        </div>
        <Field
          label="API key"
          error={wasRefused ? "Invalid key. Check that the key is complete and not revoked." : undefined}
          hint="The key is stored in this browser and sent only to this server."
        >
          {(props) => (
            <Input
              {...props}
              type="password"
              required
              autoFocus
              value={key}
              onChange={(event) => setKey(event.target.value)}
              placeholder="tmk_…"
              className="font-mono"
            />
          )}
        </Field>
        <Checkbox
          label="Stay signed in on this computer"
          hint="Otherwise, you are signed out when this tab closes."
          checked={keep}
          onChange={(event) => setKeep(event.target.checked)}
        />
        <Button type="submit" look="primary">
          Sign in
        </Button>
        <details className="text-table text-text-2">
          <summary className="cursor-pointer">How do I get a key?</summary>
          <p className="my-2">Create a key on the server with the CLI:</p>
          <CodeBlock code="npx threadmill keys create --name browser --user me" />
        </details>
      </form>
    </main>
  );
}
