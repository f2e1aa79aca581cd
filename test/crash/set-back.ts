import { statSync } from "node:fs";

/** Loaded before a server (`node --import`): while the file in SET_BACK is there, the system's clock is an hour behind. */
const file = process.env.SET_BACK as string;
const now = Date.now;
Date.now = () => now() - (statSync(file, { throwIfNoEntry: false }) ? 3_600_000 : 0);
