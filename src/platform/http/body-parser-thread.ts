import { serveRpc } from "../lib/worker-rpc.ts";
import { bodyOperations } from "./body-parser.ts";

serveRpc(bodyOperations);
