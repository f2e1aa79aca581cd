import { Ellipsis } from "lucide-react";
import type { Session } from "../../../../../../src/experiments/contract/sessions.ts";
import { Button } from "../../../../ui/button.tsx";
import { HueDot } from "../../../../ui/hue-dot.tsx";
import { classes } from "../../../../ui/layout.tsx";
import { Menu } from "../../../../ui/overlay/menu.tsx";
import type { View } from "../view.ts";

export interface HeadActions {
  onFocus(id: string): void;
  onBaseline(id: string): void;
  onHide(id: string): void;
  onRemove(id: string): void;
}

/** Header of an experiment column, with the name, the baseline mark and the actions. */
export function ExperimentHead({
  session: { id, name },
  isBaseline,
  isFocused,
  density,
  onFocus,
  onBaseline,
  onHide,
  onRemove,
}: HeadActions & { session: Session; isBaseline: boolean; isFocused: boolean; density: Density }) {
  const items = [
    { label: "Set as baseline", hint: "Key b", disabled: isBaseline, onSelect: () => onBaseline(id) },
    { label: "Hide", hint: "Key x", disabled: isBaseline, onSelect: () => onHide(id) },
    { label: "Remove from comparison", onSelect: () => onRemove(id) },
  ];
  return (
    <span className="flex items-center gap-1">
      <span className="min-w-0">
        <button
          type="button"
          title={
            isBaseline
              ? name
              : `${name}: ${isFocused ? "" : "click to select, then "}press b to make it the baseline, or x to hide it`
          }
          aria-pressed={isFocused}
          onClick={() => onFocus(id)}
          className={classes(
            density === "narrow" ? (isBaseline ? "max-w-20 2xl:max-w-36" : "max-w-36 2xl:max-w-60") : "max-w-60",
            "truncate rounded align-bottom font-medium hover:underline",
            isFocused ? "text-accent-text underline decoration-2 underline-offset-4" : "text-text",
          )}
        >
          <HueDot name={name} />
          {name}
        </button>
        {isBaseline && (
          <span className={classes("font-normal text-text-3", density === "wide" ? "ml-1" : "block")}>
            {density === "narrow" ? "(base)" : "(baseline)"}
          </span>
        )}
      </span>
      <Menu items={items}>
        <Button look="quiet" small square aria-label={`Actions for ${name}`}>
          <Ellipsis size={14} />
        </Button>
      </Menu>
    </span>
  );
}

/**
 * Density of the matrix columns: five experiments and eight keys must fit into 1280 pixels. `wide` shows everything, `medium` omits the
 * numbers of unchanged examples, and `narrow` also replaces words with symbols and `0.03` with `.03`.
 */
export type Density = "wide" | "medium" | "narrow";

/** @param columns number of experiments, including the baseline */
export const densityOf = (columns: number): Density => (columns <= 2 ? "wide" : columns === 3 ? "medium" : "narrow");

/** Whether each cell has at most two lines instead of three. With more keys, three lines would not fit into 1280 × 800 pixels. */
export const isFlat = ({ keys }: Pick<View, "keys">): boolean => keys.length > 4;
