import { clientScenarios } from "./langsmith/client.ts";

clientScenarios("");
