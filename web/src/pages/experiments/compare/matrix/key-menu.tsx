import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Ellipsis } from "lucide-react";
import type { KeyConfig } from "../../../../../../src/experiments/contract/feedback/feedback-configs.ts";
import { api } from "../../../../api/request.ts";
import { Button } from "../../../../ui/button.tsx";
import { Menu } from "../../../../ui/overlay/menu.tsx";
import { toast } from "../../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../../queries.ts";
import { COMPARISONS } from "../queries.ts";
import type { Key } from "../view.ts";

/** Settings of a score key, which apply to all datasets of the workspace. */
export function KeyMenu({ scoreKey: { name, isLowerBetter } }: { scoreKey: Key }) {
  const client = useQueryClient();
  const saving = useMutation({
    mutationFn: (isLower: boolean) => saveDirection(name, isLower),
    onSuccess: async (_, isLower) => {
      toast(`${name}: ${isLower ? "lower" : "higher"} is better`);
      await Promise.all([EXPERIMENTS, COMPARISONS].map((queryKey) => client.invalidateQueries({ queryKey })));
    },
    onError: (error) => toast(error.message, { error: true }),
  });
  return (
    <Menu
      align="start"
      items={[
        {
          label: "Lower is better",
          hint: "Applies to this score in all datasets",
          checked: isLowerBetter,
          disabled: saving.isPending,
          onSelect: () => saving.mutate(!isLowerBetter),
        },
      ]}
    >
      <Button look="quiet" small square aria-label={`Settings of ${name}`}>
        <Ellipsis size={13} />
      </Button>
    </Menu>
  );
}

async function saveDirection(feedback_key: string, is_lower_score_better: boolean): Promise<void> {
  const path = "/api/v1/feedback-configs";
  const [config] = await api.get<KeyConfig[]>(path, { query: { key: feedback_key } });
  if (config) await api.patch(path, { feedback_key, is_lower_score_better });
  // Scores without a config, for example of an upload.
  else await api.post(path, { feedback_key, feedback_config: { type: "continuous" }, is_lower_score_better });
}
