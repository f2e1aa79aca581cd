import { useQuery } from "@tanstack/react-query";
import { SendHorizontal } from "lucide-react";
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { FormError, TextArea } from "../../ui/form/field.tsx";
import { JsonEditor } from "../../ui/form/json-editor.tsx";
import { allowsText, fieldsOf, resolve } from "../../ui/form/json-schema.ts";
import { SchemaForm } from "../../ui/form/schema-form.tsx";
import { Segmented } from "../../ui/form/segmented.tsx";
import { Select } from "../../ui/form/select.tsx";
import { assistantsQuery, schemasQuery } from "../agents/queries.ts";

type Value = Record<string, unknown>;
type InputMode = "chat" | "form" | "json";

/** Key of the draft of a new thread. */
export const NEW_DRAFT = "new";

const messageOf = (content: string) => ({ messages: [{ role: "user", content }] });

const LABELS: Record<InputMode, string> = { chat: "Chat", form: "Form", json: "JSON" };

/** What the user has written, in all input formats. */
interface Draft {
  text: string;
  value: unknown;
  mode?: InputMode;
}

const EMPTY: Draft = { text: "", value: {} };
const storageKey = (draft_key: string) => `threadmill.draft.${draft_key}`;

/** A draft survives everything but sending it: a reload, another page, an interrupt in place of the input. */
function useDraft(given_key: string) {
  const [moved_to, setMovedTo] = useState<string>();
  const draft_key = moved_to ?? given_key;
  const [draft, setDraft] = useState<Draft>(() => {
    try {
      return { ...EMPTY, ...JSON.parse(sessionStorage.getItem(storageKey(draft_key)) ?? "{}") };
    } catch {
      return EMPTY;
    }
  });
  useEffect(() => {
    sessionStorage.removeItem(storageKey(draft_key));
    if (draft.text === "" && Object.keys(draft.value ?? {}).length === 0) return;
    try {
      sessionStorage.setItem(storageKey(draft_key), JSON.stringify(draft));
    } catch {
      // Browsers store about 5 million characters for all drafts of a tab. A larger draft is lost on a reload.
    }
  }, [draft_key, draft]);
  return {
    draft,
    change: (changed: Partial<Draft>) => setDraft((before) => ({ ...before, ...changed })),
    /** Makes what was written since then the draft of another thread. */
    move: (sent: Draft, to: string) => {
      sessionStorage.removeItem(storageKey(draft_key));
      setMovedTo(to);
      setDraft((now) => ({ ...EMPTY, text: now.text === sent.text ? "" : now.text }));
    },
    /** Clears what was sent. Keeps what was written while it was sent. */
    clear: (sent: Draft) => {
      // The page of the thread may have replaced this page.
      sessionStorage.removeItem(storageKey(given_key));
      setDraft((now) => ({ ...now, text: now.text === sent.text ? "" : now.text }));
    },
  };
}

/**
 * Edits the input of the next run: as a message if the graph accepts messages, as a form if the graph has an input schema, or as JSON.
 *
 * @param onSend starts the run. If the start fails, the input is kept. When another page is about to show the thread of the run,
 *   `moveDraft` leaves what was written meanwhile to that page.
 */
export function Composer({
  draft_key,
  assistant_id,
  onAssistant,
  isChat,
  hasRuns = false,
  sendLabel,
  onSend,
}: {
  /** Identifies the draft: the thread, or `new`. */
  draft_key: string;
  assistant_id: string | undefined;
  onAssistant(assistant_id: string): void;
  /** Whether the thread already has messages. */
  isChat: boolean;
  /** Whether the thread has runs. The form is then collapsed, so that the result stays in view. */
  hasRuns?: boolean;
  sendLabel: string;
  onSend(input: unknown, moveDraft: (thread_id: string) => void): Promise<unknown>;
}) {
  const { data: assistants } = useQuery(assistantsQuery);
  const { data: schemas, error } = useQuery({
    ...schemasQuery(assistant_id ?? ""),
    enabled: assistant_id !== undefined,
  });
  const schema = schemas?.input_schema;
  const fields = fieldsOf(schema);
  const modes: InputMode[] = [];
  /** Until the schema is known, the input is a message, so that the user can begin to write. */
  const isLoading = assistant_id !== undefined && !schemas && !error;
  const acceptsMessages = isChat || error !== null || fields.some(([name]) => name === "messages");
  if (isLoading || acceptsMessages) modes.push("chat");
  if (fields.length > 0) modes.push("form");
  if (!isLoading || isChat) modes.push("json");
  const { draft, change, clear, move } = useDraft(draft_key);
  const { text, value, mode: selected } = draft;
  const mode = selected && modes.includes(selected) ? selected : (modes[0] as InputMode);
  useEffect(() => {
    // A message that was written before the schema was known becomes the first text of the form.
    if (isLoading || acceptsMessages || text === "") return;
    const [name] = fields.find(([, field]) => schema && allowsText(resolve(field, schema))) ?? ["input"];
    change({ text: "", value: { ...(value as Value), [name]: text } });
  });
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const [isOpen, setOpen] = useState(false);
  const isCollapsed = hasRuns && !isOpen && mode !== "chat";
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    // A new thread begins in its first field, unless the user has moved the focus.
    if (mode !== "chat" && draft_key === NEW_DRAFT && document.activeElement === document.body)
      form.current?.querySelector<HTMLElement>("textarea, input")?.focus();
  }, [mode, draft_key]);
  const isEmpty = mode === "chat" && text.trim() === "";
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (state.busy || isEmpty) return;
    setState({ busy: true });
    try {
      await onSend(mode === "chat" ? messageOf(text) : value, (thread_id) => move(draft, thread_id));
      clear(draft);
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
          autoFocus={draft_key === NEW_DRAFT}
          rows={Math.min(Math.max(text.split("\n").length, 2), 8)}
          value={text}
          onChange={({ target }) => change({ text: target.value })}
          onKeyDown={sendOnEnter}
        />
      )}
      {mode === "form" && schema && !isCollapsed && (
        <div className="max-h-[40vh] overflow-y-auto px-0.5 pb-1">
          <SchemaForm schema={schema} value={value as Value} onChange={(given) => change({ value: given })} />
        </div>
      )}
      {mode === "json" && !isCollapsed && (
        <JsonEditor label="Input (JSON)" value={value} onChange={(given) => change({ value: given })} />
      )}
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
            onChange={(chosen) => {
              const hasValue = Object.keys(value ?? {}).length > 0;
              change({ mode: chosen, ...(mode === "chat" && text !== "" && !hasValue && { value: messageOf(text) }) });
            }}
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
            title={isLoading && !isChat ? "Loading the input schema of the assistant" : undefined}
            disabled={state.busy || (isLoading && !isChat) || assistant_id === undefined || isEmpty}
          >
            <SendHorizontal size={14} aria-hidden /> {sendLabel}
          </Button>
        )}
      </div>
    </form>
  );
}
