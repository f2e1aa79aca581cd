import { openPage, startBrowser } from "../browser.ts";
import { quantile } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { serverOf } from "../target.ts";
import { createSession, insertTrace } from "./trace-reading.ts";

const SPANS = 1_000;
/** Repetitions; each figure is their median. The first fills caches and does not count. */
const TIMES = 5;

/** In the page: the times at which the runs of the trace had arrived and now, when their rows are drawn, in ms since the navigation. */
const TIMES_OF_PAGE = `(() => {
  const responses = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/traces/"));
  return [Math.max(...responses.map(({ responseEnd }) => responseEnd)), performance.now()];
})()`;

/** The page of a trace of 1,000 runs, in a Chromium that shares the cores of this machine. */
export const webTrace: Measurement = {
  name: "web-trace",
  without: ["floor", "peer"],
  figures: [
    {
      key: "trace_drawn_ms",
      label: "page of a trace of 1,000 runs: from the response to the drawn rows, ms",
      goal: { against: "itself", max: 500 },
    },
    { key: "trace_page_ms", label: "... from navigation to the drawn rows, nothing cached, ms" },
  ],
  async measure(start) {
    await using target = await start();
    const server = serverOf(target);
    const trace_id = await insertTrace(server, await createSession(server), SPANS);
    const browser = await startBrowser();
    try {
      const [drawn, shown]: [number[], number[]] = [[], []];
      for (let n = 0; n <= TIMES; n++) {
        const address = `http://127.0.0.1:${server.port}/app/traces/${trace_id}`;
        const page = await openPage(
          browser,
          address,
          `document.querySelectorAll('[role="treegrid"] [role="row"]').length > 9`,
        );
        const [arrived_at, drawn_at] = (await page.evaluate(TIMES_OF_PAGE)) as [number, number];
        await page.context().close();
        if (n === 0) continue;
        drawn.push(drawn_at - arrived_at);
        shown.push(drawn_at);
      }
      return { trace_drawn_ms: quantile(drawn, 0.5), trace_page_ms: quantile(shown, 0.5) };
    } finally {
      await browser.close();
    }
  },
};
