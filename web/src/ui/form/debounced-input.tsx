import type { ComponentProps } from "react";
import { Input } from "./field.tsx";
import { useDebounced } from "./use-debounced.ts";

interface Props extends Omit<ComponentProps<typeof Input>, "value" | "onChange"> {
  value: string | undefined;
  onChange(text: string | undefined): void;
}

/**
 * An input whose value is in the URL. The router sets the URL later than the input event: a text that came directly from it would move the
 * caret and break input methods.
 */
export function DebouncedInput({ value = "", onChange, ...props }: Props) {
  const [text, setText] = useDebounced(value, (typed) => onChange(typed || undefined));
  return <Input {...props} value={text} onChange={({ target }) => setText(target.value)} />;
}
