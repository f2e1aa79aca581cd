import { type Ref, useEffect, useRef, useState } from "react";
import { useKeys } from "../../frame/keys.ts";
import { classes } from "../../ui/classes.ts";
import { Input } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";
import { threadsRoute } from "./page.ts";
import { readMetadata, THREAD_STATUSES, type ThreadsSearch } from "./thread-filter.ts";

const ANY = "*";

/** How long after the last letter it is looked for, in ms. */
const REST_MS = 250;

/** Which threads are listed. What is written goes into the URL. */
export function ThreadsFilters() {
  const search = threadsRoute.useSearch();
  const navigate = threadsRoute.useNavigate();
  const words = useRef<HTMLInputElement>(null);
  useKeys({ "/": { does: "Find threads by words", run: () => words.current?.focus() } });
  const change = (changed: ThreadsSearch, replace = true) =>
    void navigate({ search: (before: ThreadsSearch) => ({ ...before, ...changed }), replace });
  return (
    <search className="flex flex-wrap items-start gap-2 border-line border-b px-6 py-2 max-sm:px-4">
      <SlowInput
        ref={words}
        label="Words of the state, or an id"
        value={search.q}
        onChange={(q) => change({ q })}
        className="w-72"
      />
      <Select
        aria-label="Status"
        value={search.status ?? ANY}
        options={[
          { value: ANY, label: "Any status" },
          ...THREAD_STATUSES.map((status) => ({
            value: status,
            label: status === "interrupted" ? "waits for you, or paused" : status,
          })),
        ]}
        onChange={(chosen) => change({ status: chosen === ANY ? undefined : chosen }, false)}
      />
      <SlowInput
        label="Metadata: customer=7, tier=gold"
        value={search.metadata}
        onChange={(metadata) => change({ metadata })}
        problem={readMetadata(search.metadata) === null ? "Write key=value, or a JSON object." : undefined}
        className="w-64"
      />
    </search>
  );
}

/** An input whose text goes into the URL when the hand rests. */
function SlowInput({
  label,
  value = "",
  onChange,
  problem,
  className,
  ref,
}: {
  ref?: Ref<HTMLInputElement>;
  label: string;
  value: string | undefined;
  onChange(value: string | undefined): void;
  problem?: string;
  className: string;
}) {
  const [text, setText] = useState(value);
  const told = useRef(value);
  // Another value from outside: the way back in the browser's history.
  if (told.current !== value) {
    told.current = value;
    setText(value);
  }
  const tell = useRef(onChange);
  tell.current = onChange;
  useEffect(() => {
    if (text === told.current) return;
    const timer = setTimeout(() => {
      told.current = text;
      tell.current(text || undefined);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div className={classes(className, "max-sm:w-full")}>
      <Input
        ref={ref}
        aria-label={label}
        aria-invalid={problem ? true : undefined}
        placeholder={label}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {problem && <p className="text-error text-table">{problem}</p>}
    </div>
  );
}
