import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Ellipsis } from "lucide-react";
import { api, RequestError } from "../../../../api/request.ts";
import { Button } from "../../../../ui/button.tsx";
import { Menu } from "../../../../ui/overlay/menu.tsx";
import { toast } from "../../../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "../../queries.ts";
import { comparisonKey } from "../queries.ts";
import type { Key } from "../view.ts";

/** Settings of a score key, which apply to all datasets of the workspace. */
export function KeyMenu({ scoreKey: { name, isLowerBetter }, dataset_id }: { scoreKey: Key; dataset_id: string }) {
  const client = useQueryClient();
  const saving = useMutation({
    mutationFn: (isLower: boolean) => saveDirection(name, isLower),
    onSuccess: async (_, isLower) => {
      toast(`${name}: ${isLower ? "lower" : "higher"} is better`);
      await Promise.all([
        client.invalidateQueries({ queryKey: EXPERIMENTS }),
        client.invalidateQueries({ queryKey: comparisonKey(dataset_id) }),
      ]);
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
  try {
    await api.patch("/api/v1/feedback-configs", { feedback_key, is_lower_score_better });
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== 404) throw error;
    // Scores without a config, for example of an upload.
    const body = { feedback_key, feedback_config: { type: "continuous" }, is_lower_score_better };
    await api.post("/api/v1/feedback-configs", body);
  }
}
