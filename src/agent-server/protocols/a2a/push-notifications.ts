import type { StreamResponse } from "@a2a-js/sdk";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import { V1PushNotificationSerializer } from "@a2a-js/sdk/server";
import type { BodyParser } from "../../../platform/http/body-parser.ts";
import type { PushConfig } from "../../storage/schema.ts";
import type { TaskRow } from "../../storage/tasks.ts";
import { taskOf } from "./task-objects.ts";
import { readContent } from "./tasks.ts";

/**
 * Creates the request that reports the end of a task. The outbox contains the output of its run, which is converted here, not in the
 * transaction that ends the run.
 *
 * @param push `{config, task}` as JSON
 */
export async function notificationOf(push: string, output: string, parser: Pick<BodyParser, "lastItems">) {
  const { config, task } = JSON.parse(push) as { config: PushConfig; task: TaskRow };
  const content = await readContent(task.state, output === "null" ? null : output, parser, async () => null);
  const value = taskOf(task, content, { historyLength: 0 });
  const response: StreamResponse = { payload: { $case: "task", value } };
  const serializer =
    config.version === "0.3" ? new V03PushNotificationSerializer() : new V1PushNotificationSerializer();
  const { body, contentType } = serializer.serialize(response, value);
  const { token, authentication } = config;
  return {
    text: body,
    headers: {
      "content-type": contentType,
      ...(token !== undefined && { "x-a2a-notification-token": token }),
      ...(authentication && { authorization: `${authentication.scheme} ${authentication.credentials}` }),
    },
  };
}
