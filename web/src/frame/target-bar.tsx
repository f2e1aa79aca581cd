import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useLocation, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import type { DeploymentsList } from "../../../src/control-plane/contract/records.ts";
import { APP_PATH, api } from "../api/request.ts";
import { useMay } from "../api/session.ts";
import {
  chooseTarget,
  dependsOnTarget,
  target as getTarget,
  liveSlugOf,
  sectionOf,
  targetIn,
  useTarget,
} from "../api/target.ts";
import { Select } from "../ui/form/select.tsx";
import { toast } from "../ui/overlay/toast.tsx";

const POLL_MS = 10_000;
/** Deployments per request: the limit of the API. */
const PAGE = 100;
const HERE = "*";

/** Queries about this server, which stay the same when the target changes. */
const OF_SERVER = ["session", "info", "deployments"];

/** Reloads the data of the agents and threads. */
const resetPages = (client: QueryClient): Promise<void> =>
  client.resetQueries({ predicate: ({ queryKey }) => !OF_SERVER.includes(String(queryKey[0])) });

/** Selects whose agents the pages show: those of this server or of a live deployment. Hidden if there is no live deployment. */
export function TargetBar() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const mayDeploy = useMay("deployments");
  const target = useTarget();
  const { pathname } = useLocation();
  const { data: live } = useQuery({
    queryKey: ["deployments", "targets"],
    queryFn: async ({ signal }) => {
      const slugs: string[] = [];
      for (let offset = 0; ; offset += PAGE) {
        const query = { limit: PAGE, offset };
        const { resources } = await api.get<DeploymentsList>("/v2/deployments", { query, signal });
        slugs.push(...resources.flatMap((each) => liveSlugOf(each) ?? []));
        if (resources.length < PAGE) return slugs;
      }
    },
    enabled: mayDeploy,
    refetchInterval: POLL_MS,
  });
  const choose = async (slug: string | undefined) => {
    chooseTarget(slug);
    // The thread or assistant of the page belongs to the previous target.
    await navigate({ to: `/${sectionOf(pathname)}` as "/", search: {} });
    await resetPages(client);
  };
  useEffect(() => {
    // Back and forward lead to pages of the target that was chosen then.
    const follow = () => {
      const slug = targetIn(location.search);
      if (slug === getTarget() || !dependsOnTarget(location.pathname.slice(APP_PATH.length - 1))) return;
      chooseTarget(slug);
      void resetPages(client);
    };
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, [client]);
  const isMissing = target !== undefined && (mayDeploy === false || live?.includes(target) === false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each missing target
  useEffect(() => {
    if (!isMissing) return;
    const reason = mayDeploy ? "is no longer live" : 'requires the scope "deployments"';
    toast(`Deployment "${target}" ${reason}. The app now shows the agents of this server.`, { error: true });
    void choose(undefined);
  }, [isMissing]);
  if (!dependsOnTarget(pathname) || (target === undefined && !live?.length)) return null;
  return (
    <section
      aria-label="Target"
      className="flex h-10 shrink-0 items-center gap-2 border-line border-b px-6 text-table text-text-2 max-sm:px-4"
    >
      Agents of
      <Select
        aria-label="Target"
        className="max-w-64"
        value={target ?? HERE}
        options={[
          { value: HERE, label: "This server" },
          ...[...new Set([...(live ?? []), ...(target ? [target] : [])])].map((slug) => ({
            value: slug,
            label: slug,
            hint: "deployment",
          })),
        ]}
        onChange={(chosen) => void choose(chosen === HERE ? undefined : chosen)}
      />
    </section>
  );
}
