import { describe } from "vitest";
import { deployScenarios } from "./deploy-scenarios.ts";
import { langgraphjs } from "./langgraphjs.ts";

const { script } = await langgraphjs();

describe.skipIf(!script)("deploy of the official JavaScript CLI", () => {
  deployScenarios([process.execPath, script as string]);
});
