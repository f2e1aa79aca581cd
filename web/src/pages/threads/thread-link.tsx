import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { History } from "lucide-react";
import { useMay } from "../../api/session.ts";
import { useTarget } from "../../api/target.ts";
import { Button } from "../../ui/button.tsx";
import { threadExistsQuery } from "./queries.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Link from a traced run of an agent to its thread. For a run within a node, the thread shows the checkpoint before the node. Renders
 * nothing if the thread was deleted, as those of stateless runs are, or belongs to a deployment.
 *
 * @param metadata of the traced run
 */
export function ThreadLink({ metadata }: { metadata: Record<string, unknown> }) {
  const { thread_id, assistant_id, deployment_id, langgraph_checkpoint_ns } = metadata;
  const target = useTarget();
  const isOfServer = typeof assistant_id === "string" && deployment_id === undefined && target === undefined;
  const id = isOfServer && typeof thread_id === "string" && UUID.test(thread_id) ? thread_id : undefined;
  const may = useMay("agents") === true;
  const { data: exists } = useQuery({ ...threadExistsQuery(id ?? ""), enabled: may && id !== undefined });
  if (!exists || !id) return null;
  // The namespace is `{node}:{task id}`, and within a subgraph `{node}:{task id}|{inner node}:{inner task id}`.
  const [node, task] =
    String(langgraph_checkpoint_ns ?? "")
      .split("|", 1)[0]
      ?.split(":") ?? [];
  return (
    <Button small asChild>
      <Link
        to="/threads/$thread_id"
        params={{ thread_id: id }}
        search={task ? { task, side: "history" } : {}}
        title={task ? `Open the state before the node “${node}” to run the agent again from there` : undefined}
      >
        <History size={13} aria-hidden /> {task ? "Open checkpoint" : "Open thread"}
      </Link>
    </Button>
  );
}
