import type { Readable } from "node:stream";
import { lastWordsOf } from "../stderr-tail.ts";
import { type Engine, ifThere } from "./engine.ts";
import type { ContainerLog } from "./log-follower.ts";
import { LogFrames } from "./log-frames.ts";

const LOOK_BACK_LINES = 20;

const BOTH = { stdout: true, stderr: true, timestamps: true } as const;

export const logOf = (engine: Engine, id: string): ContainerLog => ({
  follow: (since) =>
    engine.have(async (docker) => (await docker.getContainer(id).logs({ ...BOTH, follow: true, since })) as Readable),
  isRunning: () =>
    engine.ask(async (docker) => (await ifThere(docker.getContainer(id).inspect()))?.State.Running === true),
});

/** What a container said at last. Empty when it said nothing, or is gone. */
export async function lastWordsOfContainer(engine: Engine, id: string): Promise<string> {
  const tail = LOOK_BACK_LINES;
  const written = await engine.ask((docker) => ifThere(docker.getContainer(id).logs({ ...BOTH, follow: false, tail })));
  const frames = new LogFrames().add(written ?? Buffer.alloc(0));
  return lastWordsOf(frames.map(({ bytes }) => bytes.toString("utf8")));
}
