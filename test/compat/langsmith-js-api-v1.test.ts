import { clientScenarios } from "./langsmith/client.ts";

clientScenarios("/api/v1");
