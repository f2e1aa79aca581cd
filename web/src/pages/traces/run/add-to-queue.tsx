import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ListPlus } from "lucide-react";
import { useState } from "react";
import type { AnnotationQueue } from "../../../../../src/experiments/contract/annotation-queues/queues.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { Field, Input } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { findQueues, QUEUES } from "../../queues/queries.ts";

const NEW = "new";

/** Adds a run, which may be a row of an experiment, to an existing or a new annotation queue. */
export function AddToQueue({ run_id }: { run_id: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button small onClick={() => setOpen(true)}>
        <ListPlus size={13} aria-hidden /> Add to queue
      </Button>
      {isOpen && <QueueDialog run_id={run_id} onClose={() => setOpen(false)} />}
    </>
  );
}

function QueueDialog({ run_id, onClose }: { run_id: string; onClose(): void }) {
  const client = useQueryClient();
  const { data: queues, error } = useQuery({
    queryKey: [...QUEUES, "for runs"],
    queryFn: ({ signal }) => findQueues({ limit: 1_000, sort_by: "name", sort_by_desc: false }, signal),
  });
  const { data: containing } = useQuery({
    queryKey: [...QUEUES, "of run", run_id],
    queryFn: ({ signal }) => api.get<AnnotationQueue[]>(`/api/v1/annotation-queues/${run_id}/queues`, { signal }),
  });
  const [chosen, setChosen] = useState<string>();
  const [name, setName] = useState("");
  const queue_id = chosen ?? (queues?.length === 0 ? NEW : undefined);
  const adding = useMutation({
    mutationFn: async () => {
      const path = "/api/v1/annotation-queues";
      const target = queue_id === NEW ? (await api.post<AnnotationQueue>(path, { name: name.trim() })).id : queue_id;
      // A retry after a failure uses the queue that this attempt created.
      setChosen(target);
      await api.post(`${path}/${target}/runs`, [run_id]);
    },
    onSettled: () => client.invalidateQueries({ queryKey: QUEUES }),
    onSuccess: () => {
      toast("Run added to the queue");
      onClose();
    },
  });
  return (
    <FormDialog
      title="Add to queue"
      description="Reviewers see the input and output of the run."
      action="Add run"
      disabled={adding.isPending || queue_id === undefined}
      error={adding.error ?? error}
      onSubmit={() => adding.mutate()}
      onClose={onClose}
    >
      <Field label="Queue">
        {(props) => (
          <Select
            {...props}
            value={queue_id}
            placeholder="Choose a queue"
            options={[
              { value: NEW, label: "New queue" },
              ...(queues ?? []).map(({ id, name: label }) => ({
                value: id,
                label,
                hint: containing?.some((queue) => queue.id === id) ? "Already contains this run" : undefined,
              })),
            ]}
            onChange={setChosen}
          />
        )}
      </Field>
      {queue_id === NEW && (
        <Field label="Name" isRequired>
          {(props) => (
            <Input {...props} required value={name} onChange={({ target }) => setName(target.value)} maxLength={1000} />
          )}
        </Field>
      )}
    </FormDialog>
  );
}
