import { useQuery } from "@tanstack/react-query";
import { API_URL } from "../../api/base.ts";
import { useCredentials } from "../../api/credentials.ts";
import { useMay } from "../../api/session.ts";
import { Page } from "../../frame/header.tsx";
import { Assistants } from "./assistants.tsx";
import { Evaluations } from "./evaluations.tsx";
import { serverQuery } from "./queries.ts";

/** What this is, what is running here, and what to do first. */
export function StartPage() {
  const { data: server } = useQuery(serverQuery);
  const { key } = useCredentials();
  const mayRun = useMay("agents");
  const mayMeasure = useMay("experiments");
  return (
    <Page title="Start">
      <div className="grid max-w-4xl grid-cols-1 gap-8">
        <p className="text-text-2">
          Threadmill{server && ` ${server.threadmill_version}`} runs agents and keeps the results of their experiments.
          Programs reach it at <code>{API_URL}</code>, also with the LangGraph and langsmith clients.{" "}
          {/* A link brings no key along, and the page asks for one where the server is closed. */}
          {key === undefined && (
            <a href={`${API_URL}/docs`} className="text-accent-text underline">
              API documentation
            </a>
          )}
        </p>
        {mayRun && <Assistants address={API_URL} />}
        {mayMeasure && <Evaluations />}
        {mayRun === false && mayMeasure === false && (
          <p className="text-text-2">Your key opens neither agents nor experiments; the side bar has what it does.</p>
        )}
      </div>
    </Page>
  );
}
