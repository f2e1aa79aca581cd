import { ChevronDown, ChevronRight } from "lucide-react";
import { type ReactNode, useState } from "react";
import { ExperimentHead } from "./experiment-head.tsx";
import { KeyMenu } from "./key-menu.tsx";
import type { MatrixProps } from "./matrix.tsx";
import { ErrorsCell, LatencyCell, ScoreCell } from "./matrix-cells.tsx";

/**
 * The matrix on narrow screens, with one section per experiment. By default, it is collapsed while a filter is active, so that the examples
 * fit on the screen.
 */
export function StackedMatrix({ view, search, focused, onChange, ...actions }: MatrixProps) {
  const [chosen, setOpen] = useState<boolean>();
  const isOpen = chosen ?? !(search.change || search.failed || search.ranges || search.where || search.text);
  const [baseline] = view.shown;
  if (!baseline) return null;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <section aria-label="Scores by experiment" className="border-line border-b">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-1.5 bg-sunken px-4 py-1 text-left font-medium text-table text-text-2"
      >
        <Icon size={14} aria-hidden /> Scores by experiment
      </button>
      {isOpen && (
        <div className="relative text-table">
          {view.shown.map((session, index) => (
            <section key={session.id} aria-label={session.name}>
              <h2 className="sticky top-0 z-10 border-line border-y bg-sunken px-4 py-0.5">
                <ExperimentHead
                  session={session}
                  isBaseline={index === 0}
                  isFocused={session.id === focused}
                  density="wide"
                  {...actions}
                />
              </h2>
              <dl>
                {view.keys.map((key) => (
                  <Line
                    key={key.name}
                    title={key.name}
                    note={key.isLowerBetter ? "lower is better" : undefined}
                    menu={index === 0 && key.distribution && <KeyMenu scoreKey={key} />}
                  >
                    <ScoreCell
                      view={view}
                      session={session}
                      index={index}
                      scoreKey={key}
                      search={search}
                      onChange={(change) => {
                        actions.onFocus(session.id);
                        onChange(change);
                      }}
                    />
                  </Line>
                ))}
                <Line title="latency" note="median">
                  <LatencyCell session={session} baseline={baseline} />
                </Line>
                <Line title="errors">
                  <ErrorsCell
                    session={session}
                    baseline={baseline}
                    isOnly={search.failed === session.id}
                    onChange={onChange}
                  />
                </Line>
              </dl>
            </section>
          ))}
        </div>
      )}
    </section>
  );
}

const Line = ({
  title,
  note,
  menu,
  children,
}: {
  title: string;
  note?: string;
  menu?: ReactNode;
  children: ReactNode;
}) => (
  <div className="grid grid-cols-[6.5rem_minmax(0,1fr)] gap-2 px-4 py-1">
    <dt className="min-w-0">
      <span className="flex items-center justify-between gap-1 font-medium">
        <span className="truncate" title={title}>
          {title}
        </span>
        {menu}
      </span>
      {note && <span className="block text-text-3">{note}</span>}
    </dt>
    <dd className="min-w-0">{children}</dd>
  </div>
);
