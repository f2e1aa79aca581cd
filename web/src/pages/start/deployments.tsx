import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { DeploymentStatus } from "../deployments/deployment-status.tsx";
import { deploymentsQuery } from "../deployments/queries.ts";
import { HomeList, ITEM_LINK, ITEM_TIME, MORE_LINK } from "./home-list.tsx";

export function Deployments() {
  const { data, error, refetch } = useInfiniteQuery(deploymentsQuery(undefined));
  return (
    <HomeList
      title="Deployments"
      more={
        <Link to="/deployments" search={{}} className={MORE_LINK}>
          All deployments
        </Link>
      }
      items={data?.pages.flatMap(({ resources }) => resources)}
      error={error}
      retry={refetch}
      empty="Deployed agents appear here with their status."
      keyOf={({ id }) => id}
    >
      {(deployment) => (
        <>
          <Link to={`/deployments/${deployment.id}` as "/"} className={ITEM_LINK}>
            {deployment.name}
          </Link>
          <DeploymentStatus {...deployment} />
          <span className={ITEM_TIME}>
            <RelativeTime time={deployment.updated_at} />
          </span>
        </>
      )}
    </HomeList>
  );
}
