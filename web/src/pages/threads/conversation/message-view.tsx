import { Bot, Settings2, User, Wrench } from "lucide-react";
import { memo } from "react";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { classes } from "../../../ui/layout.tsx";
import { Markdown } from "../../../ui/markdown/markdown.tsx";
import { type Message, partsOf, type Role, roleOf } from "./messages.ts";
import { ToolCallView } from "./tool-call-view.tsx";

const ROLES: Record<Role, { icon: typeof Bot; label: string }> = {
  user: { icon: User, label: "User" },
  agent: { icon: Bot, label: "Agent" },
  system: { icon: Settings2, label: "System" },
  tool: { icon: Wrench, label: "Tool" },
};

interface MessageViewProps {
  message: Message;
  /** Tool results by call ID. */
  results: ReadonlyMap<string, Message>;
  durations: ReadonlyMap<string, number>;
  isWriting?: boolean;
  /** Whether the tool calls can no longer get results. Undefined for a traced run, because other runs may contain the results. */
  isDropped: boolean | undefined;
}

export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, results, durations, isWriting, isDropped } = props;
  const role = roleOf(message);
  const { icon: Icon, label } = ROLES[role];
  const { text, reasoning, images, others } = partsOf(message);
  const calls = message.tool_calls ?? [];
  return (
    <li
      data-speaker={role}
      className="flex gap-3 [contain-intrinsic-size:auto_72px] [content-visibility:auto] max-sm:gap-2"
    >
      <span
        className={classes(
          "mt-0.5 flex size-6 shrink-0 items-center justify-center rounded-full border border-line",
          role === "user" ? "bg-selected text-accent-text" : "bg-sunken text-text-2",
        )}
      >
        <Icon size={14} aria-hidden />
      </span>
      <div className="grid min-w-0 flex-1 gap-2">
        <span className="sr-only">{message.name ?? label}:</span>
        {reasoning !== "" && (
          <details className="text-table text-text-2">
            <summary className="w-fit cursor-pointer rounded">Reasoning</summary>
            <p className="mt-1 whitespace-pre-wrap break-words border-line border-l-2 pl-3">{reasoning}</p>
          </details>
        )}
        {(text !== "" || (isWriting && calls.length === 0)) && (
          <div className="min-w-0 pt-0.5">
            {role === "user" ? (
              <p className="whitespace-pre-wrap break-words text-body">{text}</p>
            ) : (
              <Markdown text={text} isWriting={isWriting} />
            )}
          </div>
        )}
        {images.map((url, index) => (
          <img
            // biome-ignore lint/suspicious/noArrayIndexKey: the images of a message do not change
            key={index}
            src={url}
            alt={`${index + 1} of ${images.length} in this message`}
            className="max-h-80 max-w-full justify-self-start rounded-lg border border-line"
          />
        ))}
        {others.length > 0 && <JsonTree value={others.length === 1 ? others[0] : others} open={0} />}
        {calls.map((call, index) => (
          <ToolCallView
            key={call.id ?? index}
            call={call}
            result={results.get(call.id ?? "")}
            duration_ms={durations.get(call.id ?? "")}
            isDropped={isDropped}
          />
        ))}
      </div>
    </li>
  );
});
