import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { configsQuery, distributionsQuery } from "./compare/queries.ts";
import { type Key, keysOf } from "./compare/view.ts";

/** What the keys of an experiment mean, so that its scores have the same face here as where it is compared. */
export function useScoreKeys(session: Session | undefined): readonly Key[] {
  const dataset_id = session?.reference_dataset_id ?? "";
  const asked = distributionsQuery(dataset_id, session && dataset_id ? [session.id] : []);
  const { data: distributions } = useQuery(asked);
  const { data: configs } = useQuery(configsQuery);
  return useMemo(
    () => (session ? keysOf([session], distributions ?? [], configs ?? []) : []),
    [session, distributions, configs],
  );
}
