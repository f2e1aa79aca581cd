import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { Field, Input, submits } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { count } from "../../../ui/format.ts";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { previewOf } from "../preview.ts";
import { checkRows, guessUses, type Problem, type ResultFile, USES, type Use, uploadBody } from "./result-file.ts";
import { type FileUpload, sendBody } from "./uploads.ts";

const PREVIEW_ROWS = 3;
const MAX_PROBLEMS = 50;

const OPTIONS = Object.entries(USES).map(([value, label]) => ({ value: value as Use, label }));

/** Maps the columns of a CSV or JSONL file, shows the first rows as they will be stored, and uploads them. */
export function ResultFileForm({ upload, content }: { upload: FileUpload; content: ResultFile }) {
  const client = useQueryClient();
  const [uses, setUses] = useState(() => guessUses(content));
  const [dataset_name, setDataset] = useState(upload.dataset_name ?? "");
  const [experiment_name, setName] = useState(upload.file.name.replace(/\.\w+$/, ""));
  const { rows, problems } = useMemo(() => checkRows(content, uses, PREVIEW_ROWS), [content, uses]);
  const submit = () =>
    sendBody(
      upload,
      uploadBody(content, uses, { dataset_name: dataset_name.trim(), experiment_name: experiment_name.trim() }),
      content.rows.map(({ line }) => line),
      client,
    );
  return (
    <form className="grid gap-3 rounded-lg border border-line p-3" onSubmit={submits(submit)}>
      <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
        <Field label="Dataset" isRequired hint="A new name creates a dataset">
          {(props) => (
            <Input {...props} required value={dataset_name} onChange={({ target }) => setDataset(target.value)} />
          )}
        </Field>
        <Field label="Experiment" isRequired>
          {(props) => (
            <Input {...props} required value={experiment_name} onChange={({ target }) => setName(target.value)} />
          )}
        </Field>
      </div>
      <ScrollRegion label={`Columns of ${upload.file.name}`} className="max-h-64 overflow-auto">
        <table className="w-full table-fixed text-left text-table">
          <thead className="text-text-2">
            <tr>
              <th className="py-1 pr-3 font-medium">Column</th>
              <th className="py-1 pr-3 font-medium">First value</th>
              <th className="py-1 font-medium">Used as</th>
            </tr>
          </thead>
          <tbody>
            {content.columns.map((name, index) => (
              <tr key={name} className="border-line border-t">
                <td className="truncate py-1 pr-3 font-mono" title={name}>
                  {name}
                </td>
                <td className="truncate py-1 pr-3 text-text-2">{firstValue(content, index)}</td>
                <td className="py-1">
                  <Select
                    aria-label={`Use of ${name}`}
                    className="w-full"
                    value={uses[index]}
                    options={OPTIONS}
                    onChange={(use) => setUses(uses.with(index, use))}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
      {problems.length > 0 ? <Problems name={upload.file.name} problems={problems} /> : <Preview rows={rows} />}
      <Button type="submit" look="primary" className="justify-self-start" disabled={problems.length > 0}>
        Upload {count(content.rows.length)} {content.rows.length === 1 ? "row" : "rows"}
      </Button>
    </form>
  );
}

const firstValue = ({ rows }: ResultFile, index: number): string => {
  const cell = rows.map(({ cells }) => cells[index]).find((value) => value !== undefined && value !== "");
  return cell === undefined ? "" : previewOf(cell, "inputs");
};

function Problems({ name, problems }: { name: string; problems: readonly Problem[] }) {
  return (
    <div role="alert" className="rounded-md bg-error-bg px-3 py-2 text-table text-text-2">
      {count(problems.length)} {problems.length === 1 ? "problem" : "problems"} in {name}:
      <ScrollRegion label={`Problems in ${name}`} className="mt-1 max-h-40 overflow-y-auto font-mono">
        <ul>
          {problems.slice(0, MAX_PROBLEMS).map(({ line, column, message }) => (
            <li key={`${line} ${column} ${message}`} className="break-words">
              <span className="text-text">
                line {line}
                {column !== undefined && `, ${column}`}:
              </span>{" "}
              {message}
            </li>
          ))}
        </ul>
      </ScrollRegion>
    </div>
  );
}

interface Score {
  key: string;
  score?: number;
  value?: string;
}

/** The first rows as they will be stored. */
const Preview = ({ rows }: { rows: readonly Record<string, unknown>[] }) => (
  <ScrollRegion label="First rows" className="overflow-x-auto">
    <table className="w-full text-left text-table">
      <thead className="text-text-2">
        <tr>
          {["Input", "Expected", "Output", "Scores"].map((title) => (
            <th key={title} className="py-1 pr-3 font-medium">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.row_id} ${row.start_time}`} className="border-line border-t align-top">
            <td className={PREVIEW_CELL}>{previewOf(row.inputs, "inputs")}</td>
            <td className={PREVIEW_CELL}>{previewOf(row.expected_outputs, "outputs")}</td>
            <td className={PREVIEW_CELL}>{previewOf(row.error ?? row.actual_outputs, "outputs")}</td>
            <td className="py-1">
              {((row.evaluation_scores ?? []) as Score[]).map(({ key, score, value }) => (
                <span key={key} className="block whitespace-nowrap">
                  {key} <span className="font-mono">{value ?? score}</span>
                </span>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </ScrollRegion>
);

const PREVIEW_CELL = "max-w-40 truncate py-1 pr-3";
