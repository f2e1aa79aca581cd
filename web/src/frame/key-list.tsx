import { Dialog } from "../ui/overlay/dialog.tsx";
import { activeKeys } from "./keys.ts";

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
export const MOD = isMac ? "⌘" : "Ctrl";

export function KeyList({ open, onClose }: { open: boolean; onClose(): void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts">
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-6 gap-y-2 text-body">
        {Object.entries(open ? activeKeys() : {}).map(([key, { does }]) => (
          <div key={key} className="contents">
            <dt>
              <KeyCap name={key} />
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
        <dt>
          <KeyCap name="Esc" />
        </dt>
        <dd>Close</dd>
      </dl>
    </Dialog>
  );
}

export const KeyCap = ({ name }: { name: string }) => (
  <kbd className="inline-block min-w-6 rounded border border-line-strong border-b-2 bg-sunken px-1.5 text-center text-table">
    {name
      .replace(/mod\+(.)/, (_, first: string) => `${MOD} ${first.toUpperCase()}`)
      .replace("ArrowLeft", "←")
      .replace("ArrowRight", "→")}
  </kbd>
);
