import { describe } from "vitest";
import { deployScenarios } from "./deploy-scenarios.ts";
import { pythonEnv } from "./python-env.ts";

const { python } = await pythonEnv();

describe.skipIf(!python)("deploy of the official Python CLI", () => {
  deployScenarios([python as string, "-B", "-m", "langgraph_cli"]);
});
