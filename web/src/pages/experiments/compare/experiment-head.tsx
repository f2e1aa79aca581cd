import { Ellipsis } from "lucide-react";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { Button } from "../../../ui/button.tsx";
import { classes } from "../../../ui/classes.ts";
import { Menu } from "../../../ui/menu.tsx";
import type { Room } from "./room.ts";

export interface HeadActions {
  onFocus(id: string): void;
  onBaseline(id: string): void;
  onHide(id: string): void;
  onRemove(id: string): void;
}

/** An experiment above its column: its name, whether it is the baseline, what can be done with it. */
export function ExperimentHead({
  session: { id, name },
  isBaseline,
  isFocused,
  room,
  onFocus,
  onBaseline,
  onHide,
  onRemove,
}: HeadActions & { session: Session; isBaseline: boolean; isFocused: boolean; room: Room }) {
  const items = [
    { label: "Make it the baseline", hint: "Key b", disabled: isBaseline, onSelect: () => onBaseline(id) },
    { label: "Hide it", hint: "Key x", disabled: isBaseline, onSelect: () => onHide(id) },
    { label: "Remove it from the comparison", onSelect: () => onRemove(id) },
  ];
  return (
    <span className="flex items-center gap-1">
      <span className="min-w-0">
        <button
          type="button"
          title={`${name}: ${isFocused ? "chosen" : "a click chooses it"} for the keys b (make it the baseline) and x (hide it)`}
          aria-pressed={isFocused}
          onClick={() => onFocus(id)}
          className={classes(
            room === "narrow" ? (isBaseline ? "max-w-20" : "max-w-36") : "max-w-44",
            "truncate rounded align-bottom font-medium hover:underline",
            isFocused ? "text-accent-text underline decoration-2 underline-offset-4" : "text-text",
          )}
        >
          {name}
        </button>
        {isBaseline && (
          <span className={classes("font-normal text-text-3", room === "wide" ? "ml-1" : "block")}>
            {room === "narrow" ? "(base)" : "(baseline)"}
          </span>
        )}
      </span>
      <Menu items={items}>
        <Button look="quiet" small square aria-label={`More about ${name}`}>
          <Ellipsis size={14} />
        </Button>
      </Menu>
    </span>
  );
}
