import { z } from "@hono/zod-openapi";
import { eventStream, jsonResponse, queryCancel, repeated, responseHeaders } from "../../platform/contract/fields.ts";
import { Run, StreamMode } from "./records.ts";
import { OnDisconnect } from "./run-create.ts";

// What the routes of thread runs and of stateless runs share: queries, headers, answers.

const onDisconnect = {
  cancel_on_disconnect: queryCancel.optional().openapi({
    description: "Cancel the run when this reader is gone and does not come back. `cancel` means true.",
  }),
  on_disconnect: OnDisconnect.optional().openapi({ description: "Another way to say `cancel_on_disconnect`." }),
};

/** Query of the requests that create a run and wait for it. The body's `on_disconnect` wins. */
export const waitQuery = z.object(onDisconnect);

/** Query of the requests that create a run and read its events. */
export const streamQuery = waitQuery.extend({
  namespace: repeated(z.string()).optional().openapi({ description: "Accepted; has no effect yet." }),
});

/** Query of the requests that wait for a run which exists. */
export const joinQuery = z.object(onDisconnect);

/** Query of the requests that read the events of a run which exists. */
export const joinStreamQuery = joinQuery.extend({
  stream_mode: repeated(StreamMode).optional().openapi({ description: "Only these of the run's modes." }),
});

/** Header of a reader that comes back. Answered with the events after that id; `-1` means all of them. */
export const resumeHeaders = z.object({
  "Last-Event-ID": z.string().optional().openapi({ description: "Id of the last event that was seen; `-1` for none." }),
});

const CONTENT_LOCATION = "Path of the run and nothing more; clients read its id from the end.";
const LOCATION = "Where a GET goes on after the connection broke, with this request's query.";

/** A new run, with its path in a header. */
export const runCreated = {
  ...jsonResponse(Run, "The run, not started yet."),
  headers: responseHeaders({ "Content-Location": CONTENT_LOCATION }),
};

/** The events of a new run. */
export const runEvents = {
  ...eventStream(
    "Events. The first is `metadata` with the run's id; the stream closes after the run's status is final.",
  ),
  headers: responseHeaders({ "Content-Location": CONTENT_LOCATION, Location: LOCATION }),
};

/** The events of a run that existed before. */
export const joinedEvents = eventStream("Events, after `Last-Event-ID` if given.");

const OUTPUT =
  "The values after the run. Paused: with `__interrupt__`. Failed: `{__error__: {error, message}}`, also with status 200.";

/** What a new run ended with. Line breaks may come before the JSON, to keep the connection alive. */
export const runOutput = {
  ...jsonResponse(z.unknown(), OUTPUT),
  headers: responseHeaders({ "Content-Location": CONTENT_LOCATION, Location: LOCATION }),
};

/** What a run that existed before ended with. */
export const joinedOutput = { ...jsonResponse(z.unknown(), OUTPUT), headers: responseHeaders({ Location: LOCATION }) };
