import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { LogLine } from "../../../../src/control-plane/contract/logs.ts";
import type { Deployment, Revision } from "../../../../src/control-plane/contract/records.ts";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { Checkbox } from "../../ui/form/field.tsx";
import { Select } from "../../ui/form/select.tsx";
import { capitalized, count, relativeTime } from "../../ui/format.ts";
import { classes } from "../../ui/layout.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { useLogs } from "./follow-logs.ts";
import { type DeploymentSearch, deploymentRoute, LEVELS } from "./page.ts";
import { revisionsQuery } from "./queries.ts";
import { statusLabel } from "./revision-status.tsx";

const ANY = "any";
const KINDS = [
  { value: "build", label: "Build" },
  { value: "deploy", label: "Server" },
] as const;
const LEVEL_OPTIONS = [
  { value: ANY, label: "All levels" },
  ...LEVELS.slice(1).map((level) => ({ value: level, label: `${capitalized(level.toLowerCase())} and above` })),
] as const;

/** Build log or server log of a revision. New lines appear while the log is followed. */
export function Logs({ deployment }: { deployment: Deployment }) {
  const search = deploymentRoute.useSearch();
  const navigate = deploymentRoute.useNavigate();
  const { data } = useInfiniteQuery(revisionsQuery(deployment.id));
  const [isFollowing, setFollowing] = useState(true);
  const revisions = data?.pages.flatMap(({ resources }) => resources) ?? [];
  const revision_id = search.revision ?? deployment.latest_revision_id ?? undefined;
  const kind = search.logs ?? "build";
  const { lines, error, isCut } = useLogs(
    revision_id === undefined
      ? undefined
      : { deployment_id: deployment.id, revision_id, type: kind, level: search.level, text: search.text },
    isFollowing,
  );
  const change = (changed: DeploymentSearch) =>
    void navigate({ search: (before: DeploymentSearch) => ({ ...before, ...changed }), replace: true });
  if (revision_id === undefined)
    return <EmptyState title="No logs yet">Logs appear when the first revision is created.</EmptyState>;
  return (
    <div className="flex h-[calc(100vh-210px)] min-h-72 flex-col max-sm:h-[64vh]">
      <search className="mb-2 flex flex-wrap items-center gap-2">
        <Select
          aria-label="Log"
          value={kind}
          options={KINDS}
          onChange={(logs) => change({ logs })}
          className="w-28 max-sm:w-[calc(50%-4px)]"
        />
        <Select
          aria-label="Revision"
          value={revision_id}
          options={revisionOptions(revisions, revision_id)}
          onChange={(revision) => change({ revision })}
          className="w-52 max-sm:w-[calc(50%-4px)]"
        />
        <Select
          aria-label="Level"
          value={search.level ?? ANY}
          options={LEVEL_OPTIONS}
          onChange={(level) => change({ level: level === ANY ? undefined : level })}
          className="w-44 max-sm:w-[calc(50%-4px)]"
        />
        <DebouncedInput
          aria-label="Filter lines"
          placeholder="Filter lines"
          value={search.text}
          onChange={(text) => change({ text })}
          className="!w-52 max-sm:!w-[calc(50%-4px)]"
        />
        <Checkbox label="Follow" checked={isFollowing} onChange={({ target }) => setFollowing(target.checked)} />
      </search>
      {error && <ErrorState error={error} />}
      {lines === undefined && !error && <SkeletonRows label="Loading logs" />}
      {lines && <Lines lines={lines} isCut={isCut} isFollowing={isFollowing} />}
    </div>
  );
}

const revisionOptions = (revisions: readonly Revision[], chosen: string) => {
  const now = new Date();
  const known = revisions.map(({ id, status, created_at }) => ({
    value: id,
    label: `${id.slice(-8)} ${statusLabel(status)}`,
    hint: relativeTime(new Date(created_at), now),
  }));
  return known.some(({ value }) => value === chosen) ? known : [...known, { value: chosen, label: chosen.slice(-8) }];
};

/** Scrollable log lines. While the log is followed, the region stays scrolled to the end. */
function Lines({ lines, isCut, isFollowing }: { lines: readonly LogLine[]; isCut: boolean; isFollowing: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const newest = lines.at(-1)?.id;
  useEffect(() => {
    if (isFollowing && newest) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [isFollowing, newest]);
  return (
    <section
      ref={box}
      aria-label="Log lines"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      className="min-h-0 flex-1 overflow-auto rounded-lg border border-line bg-sunken py-2 font-mono text-table"
    >
      {isCut && <p className="px-3 pb-2 text-text-3">Older lines are not shown. Use the filters to find them.</p>}
      {lines.length === 0 && <p className="px-3 text-text-3">No log lines{isFollowing ? " yet" : ""}</p>}
      {lines.map((line) => (
        <div key={line.id} className="flex gap-3 px-3 [contain-intrinsic-size:auto_18px] [content-visibility:auto]">
          <time dateTime={line.timestamp} className="shrink-0 text-text-3">
            {CLOCK.format(new Date(line.timestamp))}
          </time>
          <span className={classes("w-14 shrink-0", COLORS[line.level] ?? "text-text-3")}>
            {line.level.toLowerCase()}
          </span>
          <span className="min-w-0 whitespace-pre-wrap break-words">{line.message}</span>
        </div>
      ))}
      <p className="sr-only">{count(lines.length)} lines</p>
    </section>
  );
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const COLORS: Record<string, string> = {
  WARNING: "text-interrupted",
  ERROR: "text-error",
  CRITICAL: "text-error",
};
