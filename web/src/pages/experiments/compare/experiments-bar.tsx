import { useQuery } from "@tanstack/react-query";
import { Eye, Plus, Tags } from "lucide-react";
import { useDeferredValue, useState } from "react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { Button } from "../../../ui/button.tsx";
import { Checkbox, Input } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { count, DASH } from "../../../ui/format.ts";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { Popover } from "../../../ui/overlay/popover.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { SkeletonRows } from "../../../ui/states.tsx";
import { candidatesQuery } from "./queries.ts";
import { joined, listOf, type Search } from "./search.ts";
import { MAX_EXPERIMENTS } from "./selected-experiments.ts";
import type { View } from "./view.ts";

interface BarProps {
  view: View;
  search: Search;
  onChange(change: Partial<Search>): void;
}

export function ExperimentsBar({ view, search, onChange }: BarProps) {
  const [baseline] = view.shown;
  const all = [...view.shown, ...view.hidden];
  return (
    <>
      {baseline && (
        <div className="flex min-w-0 items-center gap-2 text-table text-text-2">
          <span aria-hidden className="max-sm:hidden">
            Baseline
          </span>
          <Select
            aria-label="Baseline"
            className="max-w-56"
            value={baseline.id}
            options={all.map(({ id, name }) => ({ value: id, label: name }))}
            onChange={(id) => onChange({ baseline: id })}
          />
        </div>
      )}
      {view.hidden.length > 0 && (
        <Button
          look="quiet"
          title={view.hidden.map(({ name }) => name).join(", ")}
          onClick={() => onChange({ hidden: undefined })}
        >
          <Eye size={14} aria-hidden /> {view.hidden.length} hidden
        </Button>
      )}
      {view.shown.length > 1 && (
        <Popover
          label="Metadata"
          trigger={
            <Button>
              <Tags size={14} aria-hidden /> <span className="max-sm:sr-only">Metadata</span>
            </Button>
          }
        >
          <MetadataDifferences sessions={view.shown} />
        </Popover>
      )}
      <Popover
        label="Experiments"
        trigger={
          <Button>
            <Plus size={14} aria-hidden /> <span className="max-sm:sr-only">Experiments</span>
          </Button>
        }
      >
        <Candidates dataset_id={view.dataset_id} chosen={listOf(search.experiments)} onChange={onChange} />
      </Popover>
    </>
  );
}

/** Metadata keys whose values differ between the experiments. Values that are equal everywhere explain no difference. */
function MetadataDifferences({ sessions }: { sessions: readonly Session[] }) {
  const metadata = sessions.map(({ extra }) => (extra?.metadata ?? {}) as Record<string, unknown>);
  const keys = [...new Set(metadata.flatMap(Object.keys))].sort();
  const texts = (key: string) => metadata.map((values) => (key in values ? textOf(values[key]) : DASH));
  const differing = keys.filter((key) => new Set(texts(key)).size > 1);
  if (differing.length === 0)
    return (
      <p className="w-72 max-w-full text-table text-text-2">
        {keys.length === 0 ? "The experiments have no metadata." : "The experiments have the same metadata."}
      </p>
    );
  return (
    <ScrollRegion label="Metadata" className="max-h-96 max-w-[min(48rem,90vw)] overflow-auto">
      <table className="text-table">
        <thead>
          <tr className="text-left text-text-2">
            <th className="py-1 pr-4 font-normal">Key</th>
            {sessions.map(({ id, name }) => (
              <th key={id} className="max-w-48 truncate py-1 pr-4 font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {differing.map((key) => (
            <tr key={key} className="border-line border-t align-top">
              <th className="py-1 pr-4 text-left font-normal text-text-2">{key}</th>
              {texts(key).map((text, index) => (
                <td key={sessions[index]?.id} className="max-w-48 py-1 pr-4 font-mono">
                  <span className="line-clamp-4 [overflow-wrap:anywhere]" title={text}>
                    {text}
                  </span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {differing.length < keys.length && (
        <p className="pt-2 text-note text-text-3">
          Number of hidden keys (same value in all experiments): {count(keys.length - differing.length)}
        </p>
      )}
    </ScrollRegion>
  );
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Lists the dataset's experiments. Up to ten can be selected. */
export function Candidates({
  dataset_id,
  chosen,
  onChange,
}: {
  dataset_id: string;
  chosen: readonly string[];
  onChange(change: Partial<Search>): void;
}) {
  const [name, setName] = useState("");
  const { data: found } = useQuery(candidatesQuery(dataset_id, useDeferredValue(name)));
  return (
    <div className="grid w-80 max-w-full gap-2">
      <Input
        aria-label="Search experiments"
        placeholder="Search experiments"
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
      {!found && <SkeletonRows label="Loading experiments" rows={3} />}
      <ul className="max-h-72 overflow-y-auto" aria-label="Experiments of the dataset">
        {found?.map((session) => (
          <li key={session.id} className="flex items-center justify-between gap-3 py-1">
            <Checkbox
              label={session.name}
              checked={chosen.includes(session.id)}
              disabled={!chosen.includes(session.id) && chosen.length >= MAX_EXPERIMENTS}
              onChange={({ target }) =>
                onChange({
                  experiments: joined(
                    target.checked ? [...chosen, session.id] : chosen.filter((id) => id !== session.id),
                  ),
                })
              }
            />
            <span className="shrink-0 text-table text-text-3">
              <RelativeTime time={session.start_time} />
            </span>
          </li>
        ))}
      </ul>
      <p className="text-table text-text-3">
        {chosen.length} of {MAX_EXPERIMENTS} selected
      </p>
    </div>
  );
}
