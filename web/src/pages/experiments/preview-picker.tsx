import { useQuery } from "@tanstack/react-query";
import { Type } from "lucide-react";
import { type PayloadSide, WHOLE_PAYLOAD } from "../../../../src/platform/contract/preview.ts";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/form/select.tsx";
import { Popover } from "../../ui/overlay/popover.tsx";
import { setPreviewKeys, usePreviewKeys } from "./preview.ts";
import { payloadKeysQuery } from "./queries.ts";

/** Radix does not allow an empty value. Keys of payloads cannot contain NUL. */
const AUTOMATIC = "\0";

const SIDES: readonly (readonly [PayloadSide, string])[] = [
  ["inputs", "Input"],
  ["outputs", "Output and expected"],
];

/** Selects the keys whose values the tables of a dataset show. */
export function PreviewPicker({ dataset_id }: { dataset_id: string }) {
  return (
    <Popover
      label="Preview"
      trigger={
        <Button>
          <Type size={14} aria-hidden /> <span className="max-sm:sr-only">Preview</span>
        </Button>
      }
    >
      <Picker dataset_id={dataset_id} />
    </Popover>
  );
}

function Picker({ dataset_id }: { dataset_id: string }) {
  const chosen = usePreviewKeys(dataset_id);
  const { data: known } = useQuery(payloadKeysQuery(dataset_id));
  return (
    <div className="grid w-64 gap-3">
      {SIDES.map(([side, label]) => {
        const names = new Set([...(known?.[side] ?? []), ...(chosen[side] ? [chosen[side]] : [])]);
        names.delete(WHOLE_PAYLOAD);
        return (
          <div key={side} className="grid gap-1 text-table">
            <span className="text-text-2">{label}</span>
            <Select
              aria-label={`${label} preview`}
              value={chosen[side] ?? AUTOMATIC}
              options={[
                { value: AUTOMATIC, label: "Automatic", hint: "Last message or main text" },
                ...[...names].map((name) => ({ value: name, label: name })),
                { value: WHOLE_PAYLOAD, label: "JSON", hint: "All keys" },
              ]}
              onChange={(key) => setPreviewKeys(dataset_id, { ...chosen, [side]: key === AUTOMATIC ? undefined : key })}
            />
          </div>
        );
      })}
    </div>
  );
}
