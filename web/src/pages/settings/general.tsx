import { useQuery, useQueryClient } from "@tanstack/react-query";
import { LogOut, Monitor, Moon, Sun } from "lucide-react";
import type { ReactNode } from "react";
import { chooseWorkspace, signOut, useCredentials } from "../../api/credentials.ts";
import { api } from "../../api/request.ts";
import { serverQuery, sessionQuery, useMay } from "../../api/session.ts";
import { chooseTheme, type Theme, useTheme } from "../../frame/theme.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/code-block.tsx";
import { Segmented } from "../../ui/form/segmented.tsx";
import { Select } from "../../ui/form/select.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { Badge } from "../../ui/status.tsx";
import { workspacesQuery } from "./queries.ts";

export function General() {
  const { data: session } = useQuery(sessionQuery);
  const { data: server } = useQuery(serverQuery);
  const { key } = useCredentials();
  const client = useQueryClient();
  return (
    <div className="divide-y divide-line">
      <Row title="Theme" hint="Applies to this browser only.">
        <ThemeSwitch />
      </Row>
      <Row
        title="Signed in as"
        hint={
          key
            ? "The API key is stored in this browser."
            : "No API keys exist: anyone who can reach this server has full access."
        }
      >
        <div className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{session?.user_id}</span>
          {session?.scopes.map((scope) => (
            <Badge key={scope}>{scope}</Badge>
          ))}
          {key && (
            <Button
              small
              onClick={() => {
                signOut();
                void client.resetQueries();
              }}
            >
              <LogOut size={13} aria-hidden /> Sign out
            </Button>
          )}
        </div>
      </Row>
      <Row title="Workspace" hint="Workspaces are isolated from each other.">
        <WorkspaceChoice tenant_id={session?.tenant_id ?? ""} />
      </Row>
      <Row title="Server" hint="The API level is the version that LangGraph clients check for compatibility.">
        <span className="font-mono text-table">
          Threadmill {server?.threadmill_version} · API level {server?.version}
        </span>
      </Row>
    </div>
  );
}

const Row = ({ title, hint, children }: { title: string; hint: string; children: ReactNode }) => (
  <section className="grid grid-cols-[minmax(0,1fr)_minmax(0,1.4fr)] items-center gap-x-8 gap-y-2 py-4 max-sm:grid-cols-1">
    <div>
      <h2 className="font-medium">{title}</h2>
      <p className="text-table text-text-2">{hint}</p>
    </div>
    <div>{children}</div>
  </section>
);

const THEME_CHOICES = [
  { value: "system", label: "System", icon: Monitor },
  { value: "light", label: "Light", icon: Sun },
  { value: "dark", label: "Dark", icon: Moon },
] as const;

function ThemeSwitch() {
  const theme = useTheme();
  return (
    <Segmented<Theme>
      label="Theme"
      value={theme}
      onChange={chooseTheme}
      options={THEME_CHOICES.map(({ value, label, icon: Icon }) => ({
        value,
        label: (
          <>
            <Icon size={14} aria-hidden /> {label}
          </>
        ),
      }))}
    />
  );
}

/** Selects a workspace. Only administrators of the default workspace can list more than one workspace. */
function WorkspaceChoice({ tenant_id }: { tenant_id: string }) {
  const client = useQueryClient();
  // Checks access before switching, because a key may be limited to one workspace.
  const choose = async (chosen: string) => {
    try {
      await api.get("/app/api/session", { tenant_id: chosen });
    } catch (error) {
      return toast((error as Error).message, { error: true });
    }
    chooseWorkspace(chosen);
    await client.resetQueries();
  };
  const { data: workspaces } = useQuery({ ...workspacesQuery, enabled: useMay("admin") === true });
  if (!workspaces || workspaces.length < 2)
    return (
      <span className="inline-flex items-center gap-2">
        {workspaces?.[0]?.name} <Id id={tenant_id} />
      </span>
    );
  return (
    <Select
      aria-label="Workspace"
      className="min-w-56"
      value={tenant_id}
      options={workspaces.map((workspace) => ({ value: workspace.tenant_id, label: workspace.name }))}
      onChange={(chosen) => void choose(chosen)}
    />
  );
}
