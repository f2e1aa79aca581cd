import { type ComponentProps, type FormEvent, type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { classes } from "../layout.tsx";

const BOX =
  "w-full rounded-md border border-line-strong bg-raised px-2.5 text-body text-text transition-colors hover:not-disabled:border-text-3 disabled:opacity-55 aria-invalid:border-error user-invalid:border-error";

export function Input({ className, ...props }: ComponentProps<"input">) {
  return <input autoComplete="off" spellCheck={false} className={classes(BOX, "h-8", className)} {...props} />;
}

/** On Escape, leaves the input and keeps its text. Browsers would clear the text of an input of type `search`. */
export const leaveOnEscape = (event: KeyboardEvent<HTMLInputElement>) => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  event.currentTarget.blur();
};

export function TextArea({ className, mono, ...props }: ComponentProps<"textarea"> & { mono?: boolean }) {
  return (
    <textarea
      spellCheck={false}
      className={classes(BOX, "py-1.5", mono && "font-mono text-table", className)}
      {...props}
    />
  );
}

export const FormError = ({ error }: { error: Error | string | null | undefined }) =>
  error ? (
    <p role="alert" className="text-error text-table">
      {typeof error === "string" ? error : error.message}
    </p>
  ) : null;

/** Creates a submit handler that prevents the browser's form submission. */
export const submits = (submit: () => void) => (event: FormEvent) => {
  event.preventDefault();
  submit();
};

/** Hidden from screen readers, because they announce the input's `required` attribute. */
const RequiredMark = () => (
  <span aria-hidden className="text-error">
    *
  </span>
);

/** Describes the first of its rules that an input breaks. */
function problemOf(input: HTMLInputElement): string {
  const { validity, type } = input;
  if (validity.valueMissing) return MISSING[type] ?? "Enter a value.";
  if (validity.badInput) return "Enter a number.";
  if (validity.stepMismatch) return "Enter a whole number.";
  if (validity.rangeUnderflow) return `Must be at least ${input.min}.`;
  if (validity.rangeOverflow) return `Must be at most ${input.max}.`;
  return validity.patternMismatch && input.title ? input.title : input.validationMessage;
}

const MISSING: Record<string, string> = { radio: "Select an option.", file: "Select a file." };

/**
 * Shows what is wrong with an input in the page, in the language and the style of the page, instead of in the browser's bubble. The first
 * invalid input of the form gets the focus.
 */
function useValidation() {
  const [problem, setProblem] = useState<string>();
  return {
    problem,
    listeners: {
      onInvalidCapture: (event: FormEvent) => {
        const input = event.target as HTMLInputElement;
        event.preventDefault();
        setProblem(problemOf(input));
        const first = [...(input.form?.elements ?? [])].find((each) => each.matches(":invalid:not(fieldset)"));
        if (first === input) input.focus();
      },
      onInput: () => setProblem(undefined),
    },
  };
}

/** Inputs without labels of their own, such as the inputs of a table, with their problem below. */
export function InputRow({ className, children }: { className: string; children: ReactNode }) {
  const { problem, listeners } = useValidation();
  return (
    <div {...listeners}>
      <div className={className}>{children}</div>
      <FormError error={problem} />
    </div>
  );
}

/** Radio buttons for a choice of one option. */
export function RadioGroup<Value extends string>({
  legend,
  hint,
  required,
  value,
  options,
  onChange,
  inline,
  hideLegend,
}: {
  legend: string;
  hint?: string;
  required?: boolean;
  value: Value;
  options: readonly { value: Value; label: string; hint?: string }[];
  onChange(value: Value): void;
  /** Whether the options are side by side. */
  inline?: boolean;
  /** Whether to show the legend to screen readers only. */
  hideLegend?: boolean;
}) {
  const { problem, listeners } = useValidation();
  return (
    <fieldset {...listeners} className={inline ? "flex flex-wrap gap-x-5 gap-y-1" : "grid gap-1.5"}>
      <legend className={hideLegend ? "sr-only" : "mb-1 font-medium text-table"}>
        {legend}
        {required && <RequiredMark />}
        {hint && <span className="block font-normal text-text-3">{hint}</span>}
      </legend>
      {options.map((option) => (
        <label key={option.value} className="flex items-start gap-2 text-body">
          <input
            type="radio"
            name={legend}
            required={required}
            className="mt-1 size-3.5 accent-accent"
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>
            {option.label}
            {option.hint && <span className="block text-table text-text-3">{option.hint}</span>}
          </span>
        </label>
      ))}
      <FormError error={problem} />
    </fieldset>
  );
}

export function Checkbox({ label, hint, ...props }: ComponentProps<"input"> & { label: string; hint?: string }) {
  return (
    <label className="flex items-start gap-2 text-body">
      <input type="checkbox" className="mt-1 size-3.5 accent-accent" {...props} />
      <span>
        {label}
        {hint && <span className="block text-table text-text-3">{hint}</span>}
      </span>
    </label>
  );
}

/**
 * A label above an input, with a hint or an error below.
 *
 * @param children receives the attributes that connect the input to the label
 */
export function Field({
  label,
  hint,
  error,
  isRequired,
  children,
}: {
  label: string;
  hint?: ReactNode;
  error?: string;
  /** Adds a mark to the label. The input must also be `required`. */
  isRequired?: boolean;
  children(props: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }): ReactNode;
}) {
  const id = useId();
  const { problem, listeners } = useValidation();
  const shown = problem ?? error;
  const note = shown ?? hint;
  return (
    <div {...listeners} className="grid grid-cols-1 content-start gap-1">
      <div className="flex gap-0.5 font-medium text-table">
        <label htmlFor={id} className="min-w-0 [overflow-wrap:anywhere]">
          {label}
        </label>
        {isRequired && <RequiredMark />}
      </div>
      {children({ id, "aria-describedby": note ? `${id}-note` : undefined, "aria-invalid": shown ? true : undefined })}
      {note && (
        <p id={`${id}-note`} className={classes("text-table", shown ? "text-error" : "text-text-3")}>
          {note}
        </p>
      )}
    </div>
  );
}
