import { useMay } from "../../api/session.ts";
import { Page } from "../../frame/header.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { General } from "./general.tsx";
import { Keys } from "./keys.tsx";
import { settingsRoute } from "./page.ts";
import { Workspaces } from "./workspaces.tsx";

export function SettingsPage() {
  const { section = "general" } = settingsRoute.useSearch();
  const navigate = settingsRoute.useNavigate();
  const mayAdminister = useMay("admin");
  const adminOnly = mayAdminister ? undefined : (
    <EmptyState title="Admin access required">
      This page requires an API key with the scope <code>admin</code>. Ask the server's operator for an admin key.
    </EmptyState>
  );
  return (
    <Page title="Settings">
      <div className="max-w-5xl">
        <Tabs
          label="Settings"
          value={section}
          onChange={(chosen) => void navigate({ search: { section: chosen === "general" ? undefined : chosen } })}
          tabs={[
            { value: "general", label: "General", content: <General /> },
            { value: "keys", label: "API keys", content: adminOnly ?? <Keys /> },
            { value: "workspaces", label: "Workspaces", content: adminOnly ?? <Workspaces /> },
          ]}
        />
      </div>
    </Page>
  );
}
