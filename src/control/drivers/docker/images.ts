import type Docker from "dockerode";
import { type BuildIo, DeployError, type ImageOrder, type InstanceOrder } from "../../driver.ts";
import { type Engine, EngineAway, ifThere, saidBy, unless } from "./engine.ts";
import { exactName, isExact, isId, nameOf } from "./image-name.ts";
import type { PulledImage, PulledImages } from "./pulled-images.ts";

/** The images of the engine, as far as deployments are made of them. */
export class Images {
  readonly #engine: Engine;
  readonly #pulled: PulledImages;

  constructor(engine: Engine, pulled: PulledImages) {
    this.#engine = engine;
    this.#pulled = pulled;
  }

  /**
   * What an image is called for good, once it is here. A tag is asked of its registry anew, as it may lead elsewhere by now; when
   * the registry has no answer, the image that is here is taken.
   *
   * @throws DeployError when there is no such image, or no engine
   */
  async pin({ image, deployment_id }: ImageOrder, io: BuildIo): Promise<string> {
    try {
      const here = await this.#inspect(image);
      const pulls = !here || ((here.RepoDigests?.length ?? 0) > 0 && !isExact(image, here.Id));
      const found = pulls ? await this.#pull(image, here, io) : here;
      const artifact = exactName(image, found);
      if (here) await this.#pulled.noteUse(artifact, deployment_id);
      else await this.#pulled.note(artifact, namesOf(image, artifact, found), deployment_id);
      return artifact;
    } catch (error) {
      if (error instanceof EngineAway) throw new DeployError(error.message);
      throw error;
    }
  }

  /**
   * Fetches an image that a revision was pinned to, and that has been removed since.
   *
   * @throws DeployError when it cannot be had any more
   */
  async bring(artifact: string, { deployment_id, log }: Pick<InstanceOrder, "deployment_id" | "log">): Promise<void> {
    const found = await this.#pull(artifact, undefined, { log, signal: new AbortController().signal });
    await this.#pulled.note(artifact, namesOf(artifact, artifact, found), deployment_id);
  }

  /** @returns the image that has come, or the one that was here when none came */
  async #pull(image: string, here: Docker.ImageInspectInfo | undefined, io: BuildIo): Promise<Docker.ImageInspectInfo> {
    if (isId(image)) throw new DeployError(`There is no image ${image} here any more, and an id cannot be pulled.`);
    const tell = (level: "INFO" | "WARNING", message: string) => io.log({ at: Date.now(), level, message });
    tell("INFO", `Pulling the image ${image}`);
    try {
      await this.#fetch(image, io.signal);
    } catch (error) {
      io.signal.throwIfAborted();
      if (error instanceof EngineAway) throw error;
      if (!here)
        throw new DeployError(`There is no image ${image} here, and it could not be pulled: ${saidBy(error)}.`);
      tell("WARNING", `It could not be pulled, so the one that is here is taken: ${saidBy(error)}`);
    }
    const found = await this.#inspect(image);
    if (!found) throw new DeployError(`The image ${image} was pulled, and is not here.`);
    return found;
  }

  #fetch(image: string, signal: AbortSignal): Promise<void> {
    return this.#engine.have(async (docker) => {
      const { repository: fromImage, tag } = nameOf(image);
      const progress = await docker.createImage({ fromImage, tag, abortSignal: signal });
      // What goes wrong after the first byte is told at the end.
      await new Promise<void>((resolve, reject) =>
        docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
      );
    });
  }

  /** Removes what was pulled for a deployment, unless somebody else uses it: other deployments, containers, names. */
  release(deployment_id: string): Promise<void> {
    return this.#pulled.release(deployment_id, async ({ id, names }) => {
      for (const name of names) {
        if ((await this.#inspect(name))?.Id !== id) continue;
        await this.#engine.have((docker) => unless(docker.getImage(name).remove(), 404, 409));
      }
    });
  }

  #inspect(name: string): Promise<Docker.ImageInspectInfo | undefined> {
    return this.#engine.ask((docker) => ifThere(docker.getImage(name).inspect()));
  }
}

const namesOf = (image: string, artifact: string, { Id }: { Id: string }): PulledImage => {
  const { repository, tag } = nameOf(image);
  return { id: Id, names: [...new Set([image.includes("@") ? image : `${repository}:${tag}`, artifact])] };
};
