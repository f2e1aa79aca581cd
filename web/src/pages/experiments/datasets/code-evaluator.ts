import { APP_PATH } from "../../../api/request.ts";

/** What the code of an evaluator reads. */
export interface EvaluatedRow {
  run: { inputs: unknown; outputs: unknown };
  example: { id: string; inputs: unknown; outputs: unknown; metadata: unknown };
}

type Answer = { value: unknown } | { error: string; message: string };

export const CODE_LIMIT_S = 5;

/**
 * Runs the body of a function with the parameters `run` and `example` in a sandbox of the browser. See src/app/web-app.ts.
 *
 * @param row undefined only compiles the code
 * @returns what the function returns, or an object with the error in `__error__`
 */
export async function runCode(code: string, row?: EvaluatedRow): Promise<unknown> {
  const frame = document.createElement("iframe");
  frame.hidden = true;
  frame.setAttribute("sandbox", "allow-scripts");
  frame.src = `${APP_PATH}evaluator`;
  const { port1, port2 } = new MessageChannel();
  let timer: number | undefined;
  try {
    const answer = await new Promise<Answer>((resolve) => {
      frame.onload = () => frame.contentWindow?.postMessage({ code, row }, "*", [port2]);
      port1.onmessage = ({ data }) => resolve(data);
      const message = `The function took longer than ${CODE_LIMIT_S} s.`;
      timer = window.setTimeout(() => resolve({ error: "TimeoutError", message }), CODE_LIMIT_S * 1_000);
      document.body.append(frame);
    });
    return "error" in answer ? { __error__: answer } : answer.value;
  } finally {
    clearTimeout(timer);
    port1.close();
    // Also ends the worker, even in an endless loop.
    frame.remove();
  }
}
