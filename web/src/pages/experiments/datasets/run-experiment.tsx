import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import { credentials } from "../../../api/credentials.ts";
import { Checkbox, Field, Input, TextArea } from "../../../ui/form/field.tsx";
import { fieldsOf } from "../../../ui/form/json-schema.ts";
import { Select } from "../../../ui/form/select.tsx";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { ownAssistantsQuery, schemasQuery } from "../../agents/queries.ts";
import { examplesQuery, splitsQuery } from "../queries.ts";
import { CODE_LIMIT_S } from "./code-evaluator.ts";
import { type Evaluator, startExperiment } from "./experiment-runs.ts";

const ALL = "*";
const NONE = "*";

interface Settings {
  assistant_id?: string;
  split: string;
  concurrency: string;
  matches: readonly ("exact_match" | "json_match")[];
  uses_code: boolean;
  code: Code;
  judge_id: string;
  keep_threads: boolean;
}

/** Runs an assistant on the examples of a dataset, and evaluates its outputs. */
export function RunExperiment({ dataset, onClose }: { dataset: Dataset; onClose(): void }) {
  const client = useQueryClient();
  const { data: assistants = [], error } = useQuery(ownAssistantsQuery);
  const { data: splits = [] } = useQuery(splitsQuery(dataset.id, undefined));
  const [name, setName] = useState("");
  const [settings, setSettings] = useState(() => storedSettings(dataset.id));
  const change = (changed: Partial<Settings>) => setSettings({ ...settings, ...changed });
  const { concurrency, matches, uses_code, code, keep_threads } = settings;
  const options = assistants.map((assistant) => ({ value: assistant.assistant_id, label: assistant.name }));
  const nameOf = (id: string) => options.find(({ value }) => value === id)?.label ?? id;
  // What was stored may have been deleted since.
  const existing = (id: string | undefined) => (options.some(({ value }) => value === id) ? id : undefined);
  const assistant_id = existing(settings.assistant_id);
  const judge_id = existing(settings.judge_id);
  const split = splits.find((each) => each === settings.split);
  const evaluators: Evaluator[] = matches.map((kind) => ({ kind }));
  if (uses_code) evaluators.push({ kind: "code", ...code, key: code.key.trim() });
  if (judge_id) evaluators.push({ kind: "assistant", assistant_id: judge_id, key: nameOf(judge_id) });
  const starting = useMutation({
    mutationFn: (id: string) =>
      startExperiment(
        {
          ...{ dataset, assistant_id: id, assistant_name: nameOf(id), evaluators, concurrency: Number(concurrency) },
          ...{ keep_threads, split, tenant_id: credentials().tenant_id ?? null },
          name: name.trim() || `${nameOf(id)} ${new Date().toISOString().slice(0, 19)}`,
        },
        client,
      ),
    onSuccess: () => {
      localStorage.setItem(settingsKey(dataset.id), JSON.stringify(settings));
      onClose();
    },
  });
  const match = (kind: "exact_match" | "json_match", label: string, hint: string) => (
    <Checkbox
      label={label}
      hint={hint}
      checked={matches.includes(kind)}
      onChange={({ target }) =>
        change({ matches: target.checked ? [...matches, kind] : matches.filter((each) => each !== kind) })
      }
    />
  );
  return (
    <FormDialog
      title="Run experiment"
      description="The assistant is run once for each example, and each run is traced. Keep this browser tab open until the experiment ends."
      action="Run experiment"
      disabled={starting.isPending || assistant_id === undefined}
      error={starting.error ?? error}
      onSubmit={() => assistant_id !== undefined && starting.mutate(assistant_id)}
      onClose={onClose}
    >
      <Field label="Assistant" hint="Assistants of this server. The input of each example is passed to the assistant.">
        {(props) => (
          <Select
            {...props}
            value={assistant_id}
            placeholder="Choose an assistant"
            options={options}
            onChange={(id) => change({ assistant_id: id })}
          />
        )}
      </Field>
      {assistant_id && <InputCheck dataset={dataset} split={split} assistant_id={assistant_id} />}
      <Field label="Name" hint="Default: the assistant name and the current time.">
        {(props) => <Input {...props} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />}
      </Field>
      {splits.length > 1 && (
        <Field label="Split">
          {(props) => (
            <Select
              {...props}
              value={split ?? ALL}
              options={[{ value: ALL, label: "All examples" }, ...splits.map((each) => ({ value: each, label: each }))]}
              onChange={(chosen) => change({ split: chosen })}
            />
          )}
        </Field>
      )}
      <fieldset className="grid gap-2">
        <legend className="mb-1 font-medium text-table">Evaluators</legend>
        {match(
          "json_match",
          "JSON match",
          "Fraction of the expected values that the output contains at the same JSON paths.",
        )}
        {match("exact_match", "Exact match", "Whether the output is equal to the expected output.")}
        <Checkbox
          label="Code"
          hint={`JavaScript. It runs in this browser, without access to the network or to this page, for at most ${CODE_LIMIT_S} s per example.`}
          checked={uses_code}
          onChange={({ target }) => change({ uses_code: target.checked })}
        />
        {uses_code && <CodeFields value={code} onChange={(changed) => change({ code: changed })} />}
      </fieldset>
      <Field
        label="Assistant as evaluator"
        hint="The assistant evaluates each output, for example as an LLM judge. The assistant's input has the keys “inputs”, “outputs” and “expected”. The assistant must return “score” or “value”. It can also return “comment”."
      >
        {(props) => (
          <Select
            {...props}
            value={judge_id ?? NONE}
            options={[{ value: NONE, label: "None" }, ...options]}
            onChange={(id) => change({ judge_id: id })}
          />
        )}
      </Field>
      <Field label="Concurrency" hint="Number of examples that are run at the same time.">
        {(props) => (
          <Input
            {...props}
            type="number"
            required
            min={1}
            max={32}
            value={concurrency}
            onChange={({ target }) => change({ concurrency: target.value })}
          />
        )}
      </Field>
      <Checkbox
        label="Keep threads"
        hint="Keeps one thread for each example, so that you can inspect the thread's checkpoints and start runs from them."
        checked={keep_threads}
        onChange={({ target }) => change({ keep_threads: target.checked })}
      />
    </FormDialog>
  );
}

interface Code {
  key: string;
  code: string;
}

const FIRST_CODE: Code = {
  key: "code",
  code: `const found = run.outputs.answer;
const wanted = example.outputs.answer;
return { score: found === wanted };`,
};

const FIRST_SETTINGS: Settings = {
  split: ALL,
  concurrency: "4",
  matches: ["json_match"],
  uses_code: false,
  code: FIRST_CODE,
  judge_id: NONE,
  keep_threads: true,
};

const settingsKey = (dataset_id: string) => `threadmill.experiment.${dataset_id}`;

/** What this browser used last for the dataset. */
function storedSettings(dataset_id: string): Settings {
  try {
    return { ...FIRST_SETTINGS, ...JSON.parse(localStorage.getItem(settingsKey(dataset_id)) ?? "{}") };
  } catch {
    return FIRST_SETTINGS;
  }
}

/** Says which fields the assistant and the first examples do not share: such runs fail, or ignore the input. */
function InputCheck({
  dataset,
  split,
  assistant_id,
}: {
  dataset: Dataset;
  split: string | undefined;
  assistant_id: string;
}) {
  const { data: schemas } = useQuery(schemasQuery(assistant_id, { own: true }));
  const { data: examples } = useInfiniteQuery(examplesQuery(dataset.id, { text: undefined, split, as_of: undefined }));
  const [first] = examples?.pages[0] ?? [];
  const known = fieldsOf(schemas?.input_schema).map(([field]) => field);
  if (!first || known.length === 0) return null;
  const fields = Object.keys(first.inputs);
  if (fields.some((field) => known.includes(field))) return null;
  return (
    <p role="alert" className="rounded-md bg-worse-bg px-3 py-2 text-table">
      The first example has {fields.length === 0 ? "no input" : `the input ${fields.join(", ")}`}, but the assistant
      reads {known.join(", ")}.
    </p>
  );
}

const CodeFields = ({ value, onChange }: { value: Code; onChange(value: Code): void }) => (
  <div className="ml-5.5 grid gap-3">
    <Field label="Name of the score" isRequired>
      {(props) => (
        <Input
          {...props}
          required
          maxLength={180}
          value={value.key}
          onChange={({ target }) => onChange({ ...value, key: target.value })}
        />
      )}
    </Field>
    <Field
      label="Function body"
      isRequired
      hint="Parameters: “run” and “example”, each with “inputs” and “outputs”. “example.outputs” is the expected output. Return an object with “score” (a number or a boolean) or “value”, and optionally “comment”."
    >
      {(props) => (
        <TextArea
          {...props}
          mono
          className="[font-variant-ligatures:none]"
          required
          rows={6}
          value={value.code}
          onChange={({ target }) => onChange({ ...value, code: target.value })}
        />
      )}
    </Field>
  </div>
);
