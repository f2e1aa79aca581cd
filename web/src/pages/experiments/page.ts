import { FlaskConical } from "lucide-react";
import type { Dataset } from "../../../../src/experiments/contract/datasets/datasets.ts";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { api } from "../../api/request.ts";
import type { Page } from "../../page.ts";
import { compareRoute } from "./compare/route.ts";
import { datasetRoute, datasetsRoute, sessionRoute } from "./routes.ts";

const PALETTE_LIMIT = 6;

export const experiments: Page = {
  nav: { label: "Experiments", to: "/experiments", icon: FlaskConical, scope: "experiments" },
  routes: [datasetsRoute, datasetRoute, sessionRoute, compareRoute],
  palette: [
    {
      group: "Datasets",
      find: async (text, signal) => {
        const query = { name_contains: text || undefined, limit: PALETTE_LIMIT };
        const found = await api.get<Dataset[]>("/api/v1/datasets", { query, signal });
        return found.map(({ id, name }) => ({ label: name, hint: "Dataset", to: `/experiments/datasets/${id}` }));
      },
    },
    {
      group: "Experiments",
      find: async (text, signal) => {
        const query = { name_contains: text || undefined, limit: 10 * PALETTE_LIMIT };
        const found = await api.get<Session[]>("/api/v1/sessions", { query, signal });
        return found
          .filter(({ reference_dataset_id }) => reference_dataset_id !== null)
          .slice(0, PALETTE_LIMIT)
          .map(({ id, name }) => ({ label: name, hint: "Experiment", to: `/experiments/sessions/${id}` }));
      },
    },
  ],
};
