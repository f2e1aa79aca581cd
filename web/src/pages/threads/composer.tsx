import { useQuery } from "@tanstack/react-query";
import { SendHorizontal } from "lucide-react";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { TextArea } from "../../ui/field.tsx";
import { JsonEditor } from "../../ui/json-editor.tsx";
import { fieldsOf } from "../../ui/json-schema.ts";
import { SchemaForm } from "../../ui/schema-form.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { Select } from "../../ui/select.tsx";
import { assistantsQuery, schemasQuery } from "../agents/queries.ts";

type Value = Record<string, unknown>;
type Way = "chat" | "form" | "json";

const LABELS: Record<Way, string> = { chat: "Chat", form: "Form", json: "JSON" };

/**
 * What the next run is given: a message where the graph takes messages, else a form by its input schema, and always as JSON.
 *
 * @param onSend starts the run; what was written stays when it fails
 */
export function Composer({
  assistant_id,
  onAssistant,
  isChat,
  isLater = false,
  sendLabel,
  onSend,
}: {
  assistant_id: string | undefined;
  onAssistant(assistant_id: string): void;
  /** The thread has messages already. */
  isChat: boolean;
  /** The thread has run before: a form is folded until somebody asks for it, as what it led to is read now. */
  isLater?: boolean;
  sendLabel: string;
  onSend(input: unknown): Promise<unknown>;
}) {
  const { data: assistants } = useQuery(assistantsQuery);
  const { data: schemas } = useQuery({ ...schemasQuery(assistant_id ?? ""), enabled: assistant_id !== undefined });
  const schema = schemas?.input_schema;
  const fields = fieldsOf(schema);
  const ways: Way[] = [];
  if (isChat || fields.some(([name]) => name === "messages")) ways.push("chat");
  if (fields.length > 0) ways.push("form");
  ways.push("json");
  const [wanted, setWay] = useState<Way>();
  const way = wanted && ways.includes(wanted) ? wanted : (ways[0] as Way);
  const [text, setText] = useState("");
  const [value, setValue] = useState<unknown>({});
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const [isOpen, setOpen] = useState(false);
  const isFolded = isLater && !isOpen && way !== "chat";
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      await onSend(way === "chat" ? { messages: [{ role: "user", content: text }] } : value);
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
      {way === "chat" && (
        <TextArea
          aria-label="Message"
          placeholder="Write a message … (Enter sends, Shift + Enter begins a line)"
          required
          rows={Math.min(Math.max(text.split("\n").length, 2), 8)}
          value={text}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={sendOnEnter}
        />
      )}
      {way === "form" && schema && !isFolded && (
        <div className="max-h-[40vh] overflow-y-auto px-0.5 pb-1">
          <SchemaForm schema={schema} value={value as Value} onChange={setValue} />
        </div>
      )}
      {way === "json" && !isFolded && <JsonEditor label="Input, as JSON" value={value} onChange={setValue} />}
      {state.error && (
        <p role="alert" className="text-error text-table">
          {state.error}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Select
          aria-label="Assistant"
          className="max-w-56 max-sm:max-w-28"
          value={assistant_id}
          placeholder="Choose an assistant"
          options={(assistants ?? []).map((each) => ({
            value: each.assistant_id,
            label: each.name,
            hint: each.name === each.graph_id ? undefined : each.graph_id,
          }))}
          onChange={onAssistant}
        />
        {ways.length > 1 && !isFolded && (
          <Segmented<Way>
            label="Write the input as"
            value={way}
            options={ways.map((each) => ({ value: each, label: LABELS[each] }))}
            onChange={setWay}
          />
        )}
        {isFolded ? (
          <Button key="open" className="ml-auto" disabled={assistant_id === undefined} onClick={() => setOpen(true)}>
            Run again …
          </Button>
        ) : (
          <Button
            key="send"
            type="submit"
            look="primary"
            className="ml-auto"
            disabled={state.busy || assistant_id === undefined || (way === "chat" && text.trim() === "")}
          >
            <SendHorizontal size={14} aria-hidden /> {sendLabel}
          </Button>
        )}
      </div>
    </form>
  );
}
