import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import { Button } from "../../../ui/button.tsx";
import { Checkbox, Field, Input, TextArea } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { Progress } from "../../../ui/progress.tsx";
import { assistantsQuery } from "../../agents/queries.ts";
import { sessionsQuery, splitsQuery } from "../queries.ts";
import { CODE_LIMIT_S } from "./code-evaluator.ts";
import {
  continueExperiment,
  dismissExperiment,
  type Evaluator,
  type RunningExperiment,
  startExperiment,
  useRunningExperiments,
} from "./experiment-runs.ts";

const ALL = "*";
const NONE = "*";

/** Runs an assistant on the examples of a dataset, and evaluates its outputs. */
export function RunExperiment({ dataset, onClose }: { dataset: Dataset; onClose(): void }) {
  const client = useQueryClient();
  const { data: assistants = [], error } = useQuery(assistantsQuery);
  const { data: splits = [] } = useQuery(splitsQuery(dataset.id, undefined));
  const [assistant_id, setAssistant] = useState<string>();
  const [name, setName] = useState("");
  const [split, setSplit] = useState(ALL);
  const [concurrency, setConcurrency] = useState("4");
  const [matches, setMatches] = useState<readonly ("exact_match" | "json_match")[]>(["json_match"]);
  const [usesCode, setUsesCode] = useState(false);
  const [code, setCode] = useState(() => storedCode(dataset.id));
  const [judge_id, setJudge] = useState(NONE);
  const [keep_threads, setKeepThreads] = useState(true);
  const options = assistants.map((assistant) => ({ value: assistant.assistant_id, label: assistant.name }));
  const nameOf = (id: string) => options.find(({ value }) => value === id)?.label ?? id;
  const evaluators: Evaluator[] = matches.map((kind) => ({ kind }));
  if (usesCode) evaluators.push({ kind: "code", ...code, key: code.key.trim() });
  if (judge_id !== NONE) evaluators.push({ kind: "assistant", assistant_id: judge_id, key: nameOf(judge_id) });
  const starting = useMutation({
    mutationFn: (id: string) =>
      startExperiment(
        {
          ...{ dataset, assistant_id: id, assistant_name: nameOf(id), evaluators, concurrency: Number(concurrency) },
          keep_threads,
          name: name.trim() || `${nameOf(id)} ${new Date().toISOString().slice(0, 19)}`,
          split: split === ALL ? undefined : split,
        },
        client,
      ),
    onSuccess: () => {
      if (usesCode) localStorage.setItem(codeStorage(dataset.id), JSON.stringify(code));
      onClose();
    },
  });
  const match = (kind: "exact_match" | "json_match", label: string, hint: string) => (
    <Checkbox
      label={label}
      hint={hint}
      checked={matches.includes(kind)}
      onChange={({ target }) =>
        setMatches(target.checked ? [...matches, kind] : matches.filter((each) => each !== kind))
      }
    />
  );
  return (
    <FormDialog
      title="Run experiment"
      description="Each example becomes a run of the assistant and a trace. Keep this page open until the experiment ends."
      action="Run experiment"
      disabled={starting.isPending || assistant_id === undefined}
      error={starting.error ?? error}
      onSubmit={() => assistant_id !== undefined && starting.mutate(assistant_id)}
      onClose={onClose}
    >
      <Field label="Assistant" hint="Its input is that of the example.">
        {(props) => (
          <Select
            {...props}
            value={assistant_id}
            placeholder="Choose an assistant"
            options={options}
            onChange={setAssistant}
          />
        )}
      </Field>
      <Field label="Name" hint="If empty, the name of the assistant with the time.">
        {(props) => <Input {...props} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />}
      </Field>
      {splits.length > 1 && (
        <Field label="Split">
          {(props) => (
            <Select
              {...props}
              value={split}
              options={[{ value: ALL, label: "All examples" }, ...splits.map((each) => ({ value: each, label: each }))]}
              onChange={setSplit}
            />
          )}
        </Field>
      )}
      <fieldset className="grid gap-2">
        <legend className="mb-1 font-medium text-table">Evaluators</legend>
        {match(
          "json_match",
          "JSON match",
          "The share of the expected values that the output contains at the same place.",
        )}
        {match("exact_match", "Exact match", "Whether the output is equal to the expected output.")}
        <Checkbox
          label="Code"
          hint={`JavaScript. It runs in this browser, without access to the network and to this page, for at most ${CODE_LIMIT_S} s per example.`}
          checked={usesCode}
          onChange={({ target }) => setUsesCode(target.checked)}
        />
        {usesCode && <CodeFields value={code} onChange={setCode} />}
      </fieldset>
      <Field
        label="Assistant as evaluator"
        hint="For code, or a model as judge. Its input has inputs, outputs and expected; it returns score, or value, and comment."
      >
        {(props) => (
          <Select
            {...props}
            value={judge_id}
            options={[{ value: NONE, label: "None" }, ...options]}
            onChange={setJudge}
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
            onChange={({ target }) => setConcurrency(target.value)}
          />
        )}
      </Field>
      <Checkbox
        label="Keep threads"
        hint="One for each example, to inspect its checkpoints and to run from them."
        checked={keep_threads}
        onChange={({ target }) => setKeepThreads(target.checked)}
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

const codeStorage = (dataset_id: string) => `threadmill.evaluator.${dataset_id}`;

/** The code that this browser used last for the dataset. */
function storedCode(dataset_id: string): Code {
  try {
    return { ...FIRST_CODE, ...JSON.parse(localStorage.getItem(codeStorage(dataset_id)) ?? "{}") };
  } catch {
    return FIRST_CODE;
  }
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
      hint="Parameters: run and example, each with inputs and outputs; example.outputs is the expected output. Return score (a number or a boolean) or value, and comment."
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

/** The experiments that this page runs on a dataset. */
export function RunningExperiments({ dataset }: { dataset: Dataset }) {
  const running = useRunningExperiments().filter(({ order }) => order.dataset.id === dataset.id);
  return running.map((experiment) => <Row key={experiment.id} dataset={dataset} experiment={experiment} />);
}

function Row({
  dataset,
  experiment: { id, order, state, done, total, error },
}: {
  dataset: Dataset;
  experiment: RunningExperiment;
}) {
  const client = useQueryClient();
  const { data: sessions = [] } = useQuery(sessionsQuery(dataset.id));
  const dismiss = () => dismissExperiment(id);
  if (state === "running")
    return (
      <section aria-label={order.name} className="border-line border-b px-6 py-2 max-sm:px-4">
        <Progress label={`Running ${order.name}`} done={done} total={total} onCancel={dismiss} />
      </section>
    );
  // Without a baseline of the dataset: the previous experiment. The list begins with the newest one.
  const previous = sessions[sessions.findIndex((session) => session.id === id) + 1];
  const baseline = dataset.baseline_experiment_id ?? previous?.id;
  return (
    <section
      aria-label={order.name}
      className="flex flex-wrap items-center gap-3 border-line border-b px-6 py-2 text-table max-sm:px-4"
    >
      {state === "done" ? (
        <>
          <span className="min-w-0 flex-1">{order.name} has ended.</span>
          {baseline && baseline !== id && (
            <Link
              to="/experiments/datasets/$id/compare"
              params={{ id: dataset.id }}
              search={{ experiments: `${baseline},${id}` }}
              className="text-accent-text hover:underline"
            >
              Compare with the baseline
            </Link>
          )}
          <Link to="/experiments/sessions/$id" params={{ id }} className="text-accent-text hover:underline">
            Open
          </Link>
        </>
      ) : (
        <>
          <span role="alert" className="min-w-0 flex-1 text-error">
            {order.name} stopped after {done} of {total} examples: {error?.message}
          </span>
          <Button small onClick={() => void continueExperiment(id, client)}>
            Continue
          </Button>
        </>
      )}
      <Button small look="quiet" onClick={dismiss}>
        Close
      </Button>
    </section>
  );
}
