import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { APP_PATH } from "../api/base.ts";
import { signIn, useCredentials } from "../api/credentials.ts";
import { sessionQuery } from "../api/session.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { Checkbox, Field, Input } from "../ui/field.tsx";
import { ErrorState } from "../ui/states.tsx";

/** Shows the pages once the server has said who calls, and asks for a key when it lets nobody in without one. */
export function SignInGate({ children }: { children: ReactNode }) {
  const { refused, key } = useCredentials();
  const session = useQuery({ ...sessionQuery, enabled: !refused });
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
    // What was fetched was for somebody else, or refused.
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
          error={
            wasRefused
              ? "The server does not take this key. It may have been revoked, or not be copied whole."
              : undefined
          }
          hint="It stays in this browser and goes to this server alone."
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
          hint="Otherwise until this tab is closed."
          checked={keep}
          onChange={(event) => setKeep(event.target.checked)}
        />
        <Button type="submit" look="primary">
          Sign in
        </Button>
        <details className="text-table text-text-2">
          <summary className="cursor-pointer">Where do I get a key?</summary>
          <p className="my-2">Whoever runs the server makes one, where its data are:</p>
          <CodeBlock code="npx threadmill keys create --name browser --user me" />
        </details>
      </form>
    </main>
  );
}
