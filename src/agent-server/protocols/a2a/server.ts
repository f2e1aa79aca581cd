import { AgentCard, type StreamResponse } from "@a2a-js/sdk";
import { LegacyJsonRpcTransportHandler, V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import {
  A2A_ERROR_CODE,
  A2AError,
  JsonRpcUnsupportedOperationError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from "@a2a-js/sdk/errors";
import {
  type A2ARequestHandler,
  JsonRpcTransportHandler,
  ServerCallContext,
  V1PushNotificationSerializer,
} from "@a2a-js/sdk/server";
import { asApiError } from "../../../platform/database/database-errors.ts";
import type { BodyParser } from "../../../platform/http/body-parser.ts";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { Log } from "../../../platform/lib/log.ts";
import type { PushConfig } from "../../storage/schema.ts";
import type { TaskRow } from "../../storage/tasks.ts";
import { type CardOptions, cardOf } from "./agent-card.ts";
import { taskOf } from "./task-objects.ts";
import { type RequestOptions, type ServedRequest, taskRequests } from "./task-requests.ts";
import { readContent } from "./tasks.ts";

export type A2aServerOptions = RequestOptions & { log: Log };

/** A code of JSON-RPC for errors that the protocol does not define. */
const FORBIDDEN = -32000;

/**
 * Returns the response to a JSON-RPC message, or the responses of a stream. The method determines the version of the protocol.
 *
 * @param version the header `A2A-Version`
 */
export async function answerTo(
  options: A2aServerOptions,
  request: Omit<ServedRequest, "card" | "version"> & { card: CardOptions },
  body: JsonObject,
  version: string | undefined,
): Promise<object> {
  const isLegacy = String(body.method).includes("/");
  const errorOf = isLegacy
    ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError
    : JsonRpcTransportHandler.mapToJSONRPCError;
  const failure = (error: unknown) => ({ jsonrpc: "2.0", id: idOf(body), error: errorOf(error) });
  if (version && !/^(0\.3|1\.0)(\.\d+)?$/.test(version))
    return failure(new VersionNotSupportedError(`A2A-Version: must be 1.0 or 0.3, but is ${version.slice(0, 100)}`));
  const requestedVersion = isLegacy ? "0.3" : "1.0";
  const served = { ...request, card: cardOf(request.card), version: requestedVersion } as const;
  const { handler, wasCalled } = guarded(taskRequests(options, served), (error) =>
    toA2aError(error, served, options.log),
  );
  const transport = isLegacy ? new LegacyJsonRpcTransportHandler(handler) : new JsonRpcTransportHandler(handler);
  const answer = await transport.handle(body, new ServerCallContext({ requestedVersion }));
  if (isStream(answer)) return startStream(answer, failure);
  // The SDK reports parameters of a wrong type as an error of the server.
  const isFault = codeOf(answer) === A2A_ERROR_CODE.INTERNAL_ERROR && !wasCalled();
  return isFault ? failure(new RequestMalformedError("params: must match the parameter types of the method")) : answer;
}

const idOf = ({ id }: JsonObject): string | number | null =>
  typeof id === "string" || typeof id === "number" ? id : null;

const codeOf = (answer: object) => (answer as { error?: { code: number } }).error?.code;

export const isStream = (answer: object): answer is AsyncGenerator<object> => Symbol.asyncIterator in answer;

/** An error before the first update is an ordinary response. */
async function startStream(stream: AsyncGenerator<object>, failure: (error: unknown) => object): Promise<object> {
  try {
    const first = await stream.next();
    return continued(first, stream);
  } catch (error) {
    return failure(error);
  }
}

async function* continued(first: IteratorResult<object>, stream: AsyncGenerator<object>): AsyncGenerator<object> {
  if (!first.done) yield first.value;
  yield* stream;
}

/** Converts the errors of a handler. `wasCalled` returns whether the SDK has accepted the parameters of a method. */
function guarded(target: A2ARequestHandler, toError: (error: unknown) => Error) {
  let isCalled = false;
  const handler = new Proxy<A2ARequestHandler>(target, {
    get(_, name: keyof A2ARequestHandler) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown> | AsyncGenerator<unknown>;
      return (params: { tenant?: string } | undefined, ...others: unknown[]) => {
        if (name !== "getAgentCard") isCalled = true;
        if (params?.tenant) throw new RequestMalformedError("params.tenant: must be empty, as in the agent card");
        const result = method.call(target, params, ...others);
        return isStream(result)
          ? convertedStream(result, toError)
          : (result as Promise<unknown>).catch((error) => {
              throw toError(error);
            });
      };
    },
  });
  return { handler, wasCalled: () => isCalled };
}

async function* convertedStream(stream: AsyncGenerator<unknown>, toError: (error: unknown) => Error) {
  try {
    yield* stream;
  } catch (error) {
    throw toError(error);
  }
}

function toA2aError(error: unknown, { signal }: Pick<ServedRequest, "signal">, log: Log): Error {
  if (error instanceof A2AError) return error;
  const known = asApiError(error);
  const { code, message, status } = known;
  if (code === "run_not_found" || code === "thread_not_found") return new TaskNotFoundError(message);
  if (code === "run_ended") return new TaskNotCancelableError(message);
  if (code === "assistant_without_messages") return new UnsupportedOperationError(message);
  if (code === "auth_refused" || code === "access_ended")
    return new JsonRpcUnsupportedOperationError({ message, envelopeCode: FORBIDDEN });
  if (status < 500) return new RequestMalformedError(message.replace(/^body\./, "params."));
  // There is no reader for the response.
  if (!signal.aborted) log.error({ code, cause: known.cause ?? error }, "A2A request failed");
  return new A2AError(message);
}

/** Returns a card in the format of 1.0, or in that of 0.3 with the interfaces of 1.0. */
export async function cardFor(options: CardOptions, version: string | undefined): Promise<object> {
  const card = cardOf(options);
  const modern = AgentCard.toJSON(card) as JsonObject;
  if (version && !version.startsWith("0.")) return modern;
  const handler = { getAuthenticatedExtendedAgentCard: async () => card } as unknown as A2ARequestHandler;
  const call = { jsonrpc: "2.0", id: 1, method: "agent/getAuthenticatedExtendedCard" };
  const answer = await new LegacyJsonRpcTransportHandler(handler).handle(call, new ServerCallContext());
  return { ...(answer as { result: object }).result, supportedInterfaces: modern.supportedInterfaces };
}

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
