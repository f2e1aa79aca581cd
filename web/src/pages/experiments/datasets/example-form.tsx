import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Example } from "../../../../../src/experiments/contract/datasets/examples.ts";
import { api } from "../../../api/request.ts";
import { Field, Input } from "../../../ui/form/field.tsx";
import { JsonEditor } from "../../../ui/form/json-editor.tsx";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../queries.ts";

const SPLITS = "dataset_split";

/** The splits of an example. The server lists `base` for an example without a split. */
export const splitsOf = ({ metadata }: Example): string[] => metadata[SPLITS] as string[];

const withoutSplits = ({ [SPLITS]: _, ...metadata }: Example["metadata"]): Example["metadata"] => metadata;

const namesIn = (text: string): string[] => [...new Set(text.split(",").map((name) => name.trim()))].filter(Boolean);

/** Creates an example, or edits one. Each change creates a version of the dataset. */
export function ExampleForm({
  dataset_id,
  example,
  onSaved,
  onClose,
}: {
  dataset_id: string;
  /** Undefined to create one. */
  example?: Example;
  onSaved?(example_id: string): void;
  onClose(): void;
}) {
  const client = useQueryClient();
  const [inputs, setInputs] = useState<unknown>(example?.inputs ?? {});
  const [outputs, setOutputs] = useState<unknown>(example?.outputs ?? {});
  const [metadata, setMetadata] = useState<unknown>(withoutSplits(example?.metadata ?? {}));
  const [splits, setSplits] = useState(example ? splitsOf(example).join(", ") : "");
  const saving = useMutation({
    mutationFn: async () => {
      const body = { inputs, outputs, metadata, split: namesIn(splits) };
      if (example) await api.patch(`/api/v1/examples/${example.id}`, body);
      return example?.id ?? (await api.post<Example>("/api/v1/examples", { dataset_id, ...body })).id;
    },
    onSettled: () => client.invalidateQueries({ queryKey: EXPERIMENTS }),
    onSuccess: (id) => {
      toast(example ? "Example saved" : "Example added");
      onClose();
      onSaved?.(id);
    },
  });
  return (
    <FormDialog
      title={example ? "Edit example" : "Add example"}
      description="This change creates a new version of the dataset. Existing experiments still refer to the version that they were run on."
      action={example ? "Save" : "Add example"}
      disabled={saving.isPending}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <JsonEditor label="Input (JSON)" isObject value={inputs} onChange={setInputs} autoFocus />
      <JsonEditor label="Expected output (JSON)" isObject value={outputs} onChange={setOutputs} />
      <Field label="Splits" hint="Comma-separated names, such as “train, test”. Default: “base”.">
        {(props) => <Input {...props} value={splits} onChange={({ target }) => setSplits(target.value)} />}
      </Field>
      <JsonEditor label="Metadata (JSON)" isObject value={metadata} onChange={setMetadata} />
    </FormDialog>
  );
}
