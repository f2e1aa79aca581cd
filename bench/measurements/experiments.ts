import { quantile } from "../load.ts";
import type { Measurement, Sizes, Values } from "../measurement.ts";
import { watchOk } from "../ok-watch.ts";
import { type Server, serverOf, type Target } from "../target.ts";
import { measureOk, okFigures } from "./ok.ts";
import { bodyOf, KEYS, type Uploaded } from "./upload-body.ts";

const EXPERIMENTS = 10;
/** Total number of experiments, for the list. The others are small. */
const LISTED = 100;
const PAGE = 50;

const ok = okFigures("experiments");
const itself = (max: number) => ({ against: "itself", max }) as const;

/**
 * Ten experiments of 10,000 rows with three scores each: their upload with concurrent requests every few milliseconds, then the queries of
 * the web app.
 */
export const experiments: Measurement = {
  name: "experiments",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "upload_ms", label: "upload of 10,000 rows with 3 scores, 30 MB: ms", goal: itself(5_000) },
    { key: "upload_again_ms", label: "... of the same examples a second time: ms" },
    { key: "upload_rss_mb", label: "... growth of the process, MB", goal: itself(200) },
    { key: "upload_ok_max_ms", label: "... GET /ok meanwhile: max, ms", goal: itself(100) },
    { key: "page_p95_ms", label: "a page of 50 examples of 10 × 10,000: p95, ms", goal: itself(50), base: ok.p50 },
    { key: "preview_p95_ms", label: "the same without payloads: p95, ms", base: ok.p50 },
    {
      key: "counts_p95_ms",
      label: "improved and regressed, 9 experiments × 3 keys: p95, ms",
      goal: itself(50),
      base: ok.p50,
    },
    { key: "list_p95_ms", label: "list of 100 experiments with statistics: p95, ms", goal: itself(50), base: ok.p50 },
    { key: "pair_ms", label: "one pair of 10,000 rows with interval and test: ms", goal: itself(500) },
    { key: "all_pairs_again_p95_ms", label: "27 such pairs, cached: p95, ms" },
    ok.p50,
    ok.p99,
  ],
  async measure(start, sizes) {
    await using target = await start();
    const server = serverOf(target);
    const values = await measureOk(server, sizes);
    const uploads: Uploaded[] = [];
    Object.assign(values, await measureUpload(target, server, sizes, uploads));
    while (uploads.length < EXPERIMENTS) {
      uploads.push(await upload(server, bodyOf(sizes.experiment_rows, uploads.length)));
    }
    for (let n = EXPERIMENTS; n < LISTED; n++) await upload(server, bodyOf(10, n));
    return { ...values, ...(await measureQueries(server, sizes, uploads)) };
  },
};

export async function upload(server: Server, body: Uint8Array): Promise<Uploaded> {
  const answer = await server.send("POST", "/api/v1/datasets/upload-experiment", { body });
  const { dataset, experiment } = JSON.parse(answer);
  return { dataset: dataset.id, experiment: experiment.id };
}

/** The first upload creates the examples, the second one finds them. */
async function measureUpload(
  target: Target,
  server: Server,
  { experiment_rows }: Sizes,
  uploads: Uploaded[],
): Promise<Values> {
  await upload(server, bodyOf(10, EXPERIMENTS + LISTED)); // starts the workers
  // Created before the measurement: a body of 30 MB takes a quarter of a second.
  const bodies = [bodyOf(experiment_rows, 0), bodyOf(experiment_rows, 1)];
  const before = target.usage()?.rss_mb;
  let max_rss = before;
  const sampler = setInterval(() => {
    max_rss = Math.max(max_rss ?? 0, target.usage()?.rss_mb ?? 0);
  }, 5);
  const watch = await watchOk(server.port);
  const took: number[] = [];
  for (const body of bodies) {
    const started_at = performance.now();
    uploads.push(await upload(server, body));
    took.push(performance.now() - started_at);
  }
  const { max_ms: upload_ok_max_ms } = await watch.stop();
  clearInterval(sampler);
  return {
    upload_ms: took[0] as number,
    upload_again_ms: took[1] as number,
    upload_ok_max_ms,
    ...(before !== undefined && { upload_rss_mb: (max_rss ?? before) - before }),
  };
}

async function measureQueries(
  server: Server,
  { experiment_rows, experiment_calls: calls }: Sizes,
  all: Uploaded[],
): Promise<Values> {
  const [first] = all as [Uploaded, ...Uploaded[]];
  const session_ids = all.map(({ experiment }) => experiment);
  const [baseline_session_id, ...comparison_session_ids] = session_ids;
  const offset = () => Math.floor(Math.random() * Math.max(1, experiment_rows - PAGE));
  const at = `/api/v1/datasets/${first.dataset}`;
  const page = (preview: boolean) => () =>
    server.send("POST", `${at}/runs`, { body: { session_ids, offset: offset(), limit: PAGE, preview } });
  const compare = (more: object) => () =>
    server.send("POST", `${at}/compare`, { body: { baseline_session_id, comparison_session_ids, limit: 0, ...more } });
  const list = () =>
    server.send("GET", `/api/v1/sessions?reference_dataset=${first.dataset}&include_stats=true&limit=${LISTED}`);
  const page_p95_ms = await p95(calls, page(false));
  const preview_p95_ms = await p95(calls, page(true));
  const counts_p95_ms = await p95(calls, compare({ significance: false }));
  const list_p95_ms = await p95(calls, list);
  const started_at = performance.now();
  await compare({ comparison_session_ids: comparison_session_ids.slice(0, 1), feedback_keys: [KEYS[1]] })();
  const pair_ms = performance.now() - started_at;
  await compare({})();
  return {
    page_p95_ms,
    preview_p95_ms,
    counts_p95_ms,
    list_p95_ms,
    pair_ms,
    all_pairs_again_p95_ms: await p95(calls, compare({})),
  };
}

/** Sequential calls. The first call compiles code and does not count. */
async function p95(calls: number, call: () => Promise<unknown>): Promise<number> {
  await call();
  const took: number[] = [];
  for (let n = 0; n < calls; n++) {
    const started_at = performance.now();
    await call();
    took.push(performance.now() - started_at);
  }
  return quantile(took, 0.95);
}
