/** The rules forbid to fetch something. Its message is one sentence for the caller, and says nothing of what was found there. */
export class FetchRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "FetchRefusedError";
  }
}

/** Nothing that can be used came back. Its message is one sentence for the caller; the cause is for the log. */
export class FetchFailedError extends Error {
  readonly reason: "timeout" | "too_large" | "unreachable";

  constructor(reason: FetchFailedError["reason"], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "FetchFailedError";
    this.reason = reason;
  }
}
