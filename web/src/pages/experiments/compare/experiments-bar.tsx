import { useQuery } from "@tanstack/react-query";
import { Eye, Plus } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { Checkbox, Input } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
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
