import { useQuery } from "@tanstack/react-query";
import { SendHorizontal } from "lucide-react";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { FormError, TextArea } from "../../ui/form/field.tsx";
import { JsonEditor } from "../../ui/form/json-editor.tsx";
import { fieldsOf } from "../../ui/form/json-schema.ts";
import { SchemaForm } from "../../ui/form/schema-form.tsx";
import { Segmented } from "../../ui/form/segmented.tsx";
import { Select } from "../../ui/form/select.tsx";
import { assistantsQuery, schemasQuery } from "../agents/queries.ts";

type Value = Record<string, unknown>;
type InputMode = "chat" | "form" | "json";

const LABELS: Record<InputMode, string> = { chat: "Chat", form: "Form", json: "JSON" };

/**
 * Edits the input of the next run: as a message if the graph accepts messages, as a form if the graph has an input schema, or as JSON.
 *
 * @param onSend starts the run. If the start fails, the input is kept.
 */
export function Composer({
  assistant_id,
  onAssistant,
  isChat,
  hasRuns = false,
  sendLabel,
  onSend,
}: {
  assistant_id: string | undefined;
  onAssistant(assistant_id: string): void;
  /** Whether the thread already has messages. */
  isChat: boolean;
  /** Whether the thread has runs. The form is then collapsed, so that the result stays in view. */
  hasRuns?: boolean;
  sendLabel: string;
  onSend(input: unknown): Promise<unknown>;
}) {
  const { data: assistants } = useQuery(assistantsQuery);
  const { data: schemas } = useQuery({ ...schemasQuery(assistant_id ?? ""), enabled: assistant_id !== undefined });
  const schema = schemas?.input_schema;
  const fields = fieldsOf(schema);
  const modes: InputMode[] = [];
  if (isChat || fields.some(([name]) => name === "messages")) modes.push("chat");
  if (fields.length > 0) modes.push("form");
  modes.push("json");
  const [selected, setMode] = useState<InputMode>();
  const mode = selected && modes.includes(selected) ? selected : (modes[0] as InputMode);
  const [text, setText] = useState("");
  const [value, setValue] = useState<unknown>({});
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const [isOpen, setOpen] = useState(false);
  const isCollapsed = hasRuns && !isOpen && mode !== "chat";
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      await onSend(mode === "chat" ? { messages: [{ role: "user", content: text }] } : value);
      setText("");
      setState({});
      setOpen(false);
    } catch (error) {
      setState({ error: (error as Error).message });
    }
  };
  const sendOnEnter = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    form.current?.requestSubmit();
  };
  return (
    <form ref={form} aria-label="Input" onSubmit={submit} className="grid gap-2">
      {mode === "chat" && (
        <TextArea
          aria-label="Message"
          placeholder="Write a message… (Enter to send, Shift + Enter for a new line)"
          required
          rows={Math.min(Math.max(text.split("\n").length, 2), 8)}
          value={text}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={sendOnEnter}
        />
      )}
      {mode === "form" && schema && !isCollapsed && (
        <div className="max-h-[40vh] overflow-y-auto px-0.5 pb-1">
          <SchemaForm schema={schema} value={value as Value} onChange={setValue} />
        </div>
      )}
      {mode === "json" && !isCollapsed && <JsonEditor label="Input (JSON)" value={value} onChange={setValue} />}
      <FormError error={state.error} />
      <div className="flex flex-wrap items-center gap-2">
        <Select
          aria-label="Assistant"
          className="max-w-56 max-sm:max-w-28"
          value={assistant_id}
          placeholder="Select an assistant"
          options={(assistants ?? []).map((each) => ({
            value: each.assistant_id,
            label: each.name,
            hint: each.name === each.graph_id ? undefined : each.graph_id,
          }))}
          onChange={onAssistant}
        />
        {modes.length > 1 && !isCollapsed && (
          <Segmented<InputMode>
            label="Input format"
            value={mode}
            options={modes.map((each) => ({ value: each, label: LABELS[each] }))}
            onChange={setMode}
          />
        )}
        {isCollapsed ? (
          <Button key="open" className="ml-auto" disabled={assistant_id === undefined} onClick={() => setOpen(true)}>
            Run again…
          </Button>
        ) : (
          <Button
            key="send"
            type="submit"
            look="primary"
            className="ml-auto"
            disabled={state.busy || assistant_id === undefined || (mode === "chat" && text.trim() === "")}
          >
            <SendHorizontal size={14} aria-hidden /> {sendLabel}
          </Button>
        )}
      </div>
    </form>
  );
}
