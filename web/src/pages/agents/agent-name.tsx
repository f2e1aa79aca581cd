import { useQuery } from "@tanstack/react-query";
import { DASH } from "../../ui/format.ts";
import { HueDot } from "../../ui/hue-dot.tsx";
import { assistantsQuery } from "./queries.ts";

/** Name and hue of the agent of a thread or run. A deleted assistant is shown by the name of its graph. */
export function AgentName({ assistant_id, graph_id }: { assistant_id?: unknown; graph_id?: unknown }) {
  const { data: assistants } = useQuery(assistantsQuery);
  const name = assistants?.find((each) => each.assistant_id === assistant_id)?.name ?? graph_id;
  if (typeof name !== "string") return DASH;
  return (
    <>
      <HueDot name={name} />
      {name}
    </>
  );
}
