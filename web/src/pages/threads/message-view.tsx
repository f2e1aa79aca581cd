import { Bot, Settings2, User, Wrench } from "lucide-react";
import { memo } from "react";
import { classes } from "../../ui/classes.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { type Message, partsOf, type Speaker, speakerOf } from "./messages.ts";
import { ToolCallView } from "./tool-call-view.tsx";

const SPEAKERS: Record<Speaker, { icon: typeof Bot; label: string }> = {
  person: { icon: User, label: "Person" },
  agent: { icon: Bot, label: "Agent" },
  system: { icon: Settings2, label: "System" },
  tool: { icon: Wrench, label: "Tool" },
};

const CURSOR = <span className="ml-0.5 inline-block h-4 w-1.5 animate-pulse-slow bg-accent-text align-text-bottom" />;

interface MessageViewProps {
  message: Message;
  /** What tools answered, by the id of the call. */
  answers: ReadonlyMap<string, Message>;
  durations: ReadonlyMap<string, number>;
  isWriting?: boolean;
  /** The conversation went on without what its calls ask for. */
  isPassed?: boolean;
}

/** What one side said, with the tools that it called. */
export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, answers, durations, isWriting, isPassed = false } = props;
  const speaker = speakerOf(message);
  const { icon: Icon, label } = SPEAKERS[speaker];
  const { text, others } = partsOf(message);
  const calls = message.tool_calls ?? [];
  return (
    <li
      data-speaker={speaker}
      className="flex gap-3 [contain-intrinsic-size:auto_72px] [content-visibility:auto] max-sm:gap-2"
    >
      <span
        className={classes(
          "mt-0.5 flex size-6 shrink-0 items-center justify-center rounded-full border border-line",
          speaker === "person" ? "bg-selected text-accent-text" : "bg-sunken text-text-2",
        )}
      >
        <Icon size={14} aria-hidden />
      </span>
      <div className="grid min-w-0 flex-1 gap-2">
        <span className="sr-only">{message.name ?? label}:</span>
        {(text !== "" || (isWriting && calls.length === 0)) && (
          <div className="min-w-0 pt-0.5">
            {speaker === "person" ? (
              <p className="whitespace-pre-wrap break-words text-body">{text}</p>
            ) : (
              <Markdown text={text} end={isWriting ? CURSOR : undefined} />
            )}
          </div>
        )}
        {others.length > 0 && <JsonTree value={others.length === 1 ? others[0] : others} open={0} />}
        {calls.map((call, index) => (
          <ToolCallView
            key={call.id ?? index}
            call={call}
            answer={answers.get(call.id ?? "")}
            duration_ms={durations.get(call.id ?? "")}
            isPassed={isPassed}
          />
        ))}
      </div>
    </li>
  );
});
