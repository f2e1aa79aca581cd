import { type ReactNode, type Ref, useRef } from "react";
import { useTarget } from "../../../api/target.ts";
import { useKeys } from "../../../frame/keys.ts";
import { Checkbox, Input } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { useDebounced } from "../../../ui/form/use-debounced.ts";
import { capitalized } from "../../../ui/format.ts";
import { classes } from "../../../ui/layout.tsx";
import { threadsRoute } from "../page.ts";
import { parseMetadata, THREAD_STATUSES, type ThreadsSearch } from "../thread-filter.ts";

const ANY = "*";

/** @param children content at the right of the filters */
export function ThreadsFilters({ children }: { children: ReactNode }) {
  const search = threadsRoute.useSearch();
  const navigate = threadsRoute.useNavigate();
  const target = useTarget();
  const searchInput = useRef<HTMLInputElement>(null);
  useKeys({ "/": { does: "Search threads", run: () => searchInput.current?.focus() } });
  const change = (changed: ThreadsSearch, replace = true) =>
    void navigate({ search: (before: ThreadsSearch) => ({ ...before, ...changed }), replace });
  return (
    <search className="flex flex-wrap items-start gap-2 border-line border-b px-6 py-2 max-sm:px-4">
      {target === undefined && (
        <DebouncedInput
          ref={searchInput}
          label="Search content or ID"
          value={search.q}
          onChange={(q) => change({ q })}
          className="w-72"
        />
      )}
      <Select
        aria-label="Status"
        value={search.status ?? ANY}
        options={[
          { value: ANY, label: "Any status" },
          ...THREAD_STATUSES.map((status) => ({
            value: status,
            label:
              status === "interrupted"
                ? "Interrupted (waiting for input, or paused at a breakpoint)"
                : capitalized(status),
          })),
        ]}
        onChange={(chosen) => change({ status: chosen === ANY ? undefined : chosen }, false)}
      />
      <DebouncedInput
        label="Metadata (customer=7, tier=gold)"
        value={search.metadata}
        onChange={(metadata) => change({ metadata })}
        error={parseMetadata(search.metadata) === null ? "Use key=value or a JSON object." : undefined}
        className="w-64"
      />
      {target === undefined && (
        <span className="self-center">
          <Checkbox
            label="Threads of experiments"
            checked={search.experiments === true}
            onChange={(event) => change({ experiments: event.target.checked || undefined })}
          />
        </span>
      )}
      {children}
    </search>
  );
}

function DebouncedInput({
  label,
  value = "",
  onChange,
  error,
  className,
  ref,
}: {
  ref?: Ref<HTMLInputElement>;
  label: string;
  value: string | undefined;
  onChange(value: string | undefined): void;
  error?: string;
  className: string;
}) {
  const [text, setText] = useDebounced(value, (typed) => onChange(typed || undefined));
  return (
    <div className={classes(className, "max-sm:w-full")}>
      <Input
        ref={ref}
        aria-label={label}
        aria-invalid={error ? true : undefined}
        placeholder={label}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {error && <p className="text-error text-table">{error}</p>}
    </div>
  );
}
