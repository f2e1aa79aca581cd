import { useQuery } from "@tanstack/react-query";
import { useCredentials } from "../../api/credentials.ts";
import { API_URL, agentsUrl } from "../../api/request.ts";
import { serverQuery, useMay } from "../../api/session.ts";
import { useTarget } from "../../api/target.ts";
import { Page } from "../../frame/header.tsx";
import { FailedRuns, FailedThreads, RecentThreads, WaitingThreads } from "./agent-lists.tsx";
import { Assistants } from "./assistants.tsx";
import { Deployments } from "./deployments.tsx";
import { Evaluations } from "./evaluations.tsx";

export function StartPage() {
  const { data: server } = useQuery(serverQuery);
  const { key } = useCredentials();
  const target = useTarget();
  const mayRun = useMay("agents");
  const mayDeploy = useMay("deployments");
  const mayMeasure = useMay("experiments");
  return (
    <Page title="Home">
      <div className="grid max-w-6xl grid-cols-1 gap-6">
        {mayRun && <Assistants address={agentsUrl()} />}
        <div className="grid grid-cols-1 gap-x-8 gap-y-6 lg:grid-cols-2">
          {mayRun && (
            <>
              <WaitingThreads />
              <RecentThreads />
              {target === undefined ? <FailedRuns /> : <FailedThreads />}
            </>
          )}
          {mayMeasure && <Evaluations />}
          {mayDeploy && <Deployments />}
        </div>
        <p className="text-table text-text-2">
          Threadmill{server && ` ${server.threadmill_version}`} runs agents and stores experiment results. The API at{" "}
          <code>{API_URL}</code> works with the LangGraph and LangSmith clients.{" "}
          {/* A link cannot send an API key, so the link is hidden if the documentation requires a key. */}
          {key === undefined && (
            <a href={`${API_URL}/docs`} className="text-accent-text underline">
              API documentation
            </a>
          )}
        </p>
        {mayRun === false && mayMeasure === false && (
          <p className="text-text-2">
            Your key has no access to agents or experiments. The sidebar lists the pages that you can access.
          </p>
        )}
      </div>
    </Page>
  );
}
