import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Example } from "../../../../../src/experiments/contract/datasets/examples.ts";
import { api } from "../../../api/request.ts";
import { Field, Input } from "../../../ui/form/field.tsx";
import { JsonEditor } from "../../../ui/form/json-editor.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../../experiments/queries.ts";

const NEW = "new";

/** Creates an example from the inputs and outputs of a run or a thread, in an existing or a new dataset. */
export function AddToDataset({
  run_id,
  onClose,
  ...values
}: {
  inputs: unknown;
  outputs: unknown;
  /** ID of the run that the example links to. */
  run_id: string | undefined;
  onClose(): void;
}) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: datasets, error } = useQuery({
    queryKey: [...EXPERIMENTS, "for examples"],
    queryFn: ({ signal }) =>
      api.get<Dataset[]>("/api/v1/datasets", { query: { limit: 1_000, sort_by: "name", sort_by_desc: false }, signal }),
  });
  const [chosen, setChosen] = useState<string>();
  const [name, setName] = useState("");
  const [inputs, setInputs] = useState<unknown>(values.inputs ?? {});
  const [outputs, setOutputs] = useState<unknown>(values.outputs ?? {});
  const dataset_id = chosen ?? (datasets?.length === 0 ? NEW : undefined);
  const adding = useMutation({
    mutationFn: async () => {
      const target =
        dataset_id === NEW ? (await api.post<Dataset>("/api/v1/datasets", { name: name.trim() })).id : dataset_id;
      // A retry after a failure uses the dataset that this attempt created.
      setChosen(target);
      return api.post<Example>("/api/v1/examples", { dataset_id: target, inputs, outputs, source_run_id: run_id });
    },
    onSettled: () => client.invalidateQueries({ queryKey: EXPERIMENTS }),
    onSuccess: async (example) => {
      toast("Example added");
      onClose();
      await navigate({
        to: "/experiments/datasets/$id",
        params: { id: example.dataset_id },
        search: { tab: "examples", example: example.id },
      });
    },
  });
  return (
    <FormDialog
      title="Add to dataset"
      description="Creates an example. Edit the expected output if the output of the run was wrong."
      action="Add example"
      disabled={adding.isPending || dataset_id === undefined}
      error={adding.error ?? error}
      onSubmit={() => adding.mutate()}
      onClose={onClose}
    >
      <Field label="Dataset">
        {(props) => (
          <Select
            {...props}
            value={dataset_id}
            placeholder="Choose a dataset"
            options={[
              { value: NEW, label: "New dataset" },
              ...(datasets ?? []).map(({ id, name: label }) => ({ value: id, label })),
            ]}
            onChange={setChosen}
          />
        )}
      </Field>
      {dataset_id === NEW && (
        <Field label="Name" isRequired>
          {(props) => (
            <Input {...props} required value={name} onChange={({ target }) => setName(target.value)} maxLength={200} />
          )}
        </Field>
      )}
      <JsonEditor label="Input" isObject value={inputs} onChange={setInputs} />
      <JsonEditor label="Expected output" isObject value={outputs} onChange={setOutputs} />
    </FormDialog>
  );
}
