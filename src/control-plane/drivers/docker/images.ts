import type Docker from "dockerode";
import { unlessAborted } from "../../../platform/lib/unless-aborted.ts";
import { type BuildIo, DeployError, type ImageOrder, type InstanceOrder } from "../driver.ts";
import { type Engine, EngineAway, ifThere, requestParts, saidBy, statusOf, unless } from "./engine.ts";
import { fullName, type ImageName, isId, isListed, nameOf, THIS_MACHINE } from "./image-name.ts";
import type { PulledImages } from "./pulled-images.ts";

/** Limit for resolving a name at its registry. */
const REGISTRY_TIMEOUT_MS = 60_000;

const SETTING = "THREADMILL_DOCKER_REGISTRIES";

/** The images of the engine, as far as deployments are made of them. */
export class Images {
  readonly #engine: Engine;
  readonly #pulled: PulledImages;
  readonly #registries: readonly string[];

  /** @param registries hosts, or beginnings of repositories, that images may come from */
  constructor(engine: Engine, pulled: PulledImages, registries: readonly string[]) {
    this.#engine = engine;
    this.#pulled = pulled;
    this.#registries = registries;
  }

  /**
   * Resolves a name to the digest that its registry returns, or to an id where the image was tagged on this machine, and pulls the
   * image where it is missing. An image is not allowed because it is on the engine: another user may have pulled it with credentials.
   *
   * @throws DeployError when there is no such image, it is not allowed, or there is no engine
   */
  async pin({ image, deployment_id, pinned }: ImageOrder, { log, signal }: BuildIo): Promise<string> {
    try {
      if (!isId(image)) this.#requireListed(image);
      const artifact = pinned ? image : await this.#resolve(image, signal);
      await this.have(artifact, { deployment_id, log }, signal);
      return artifact;
    } catch (error) {
      if (error instanceof EngineAway) throw new DeployError(error.message);
      throw error;
    }
  }

  /**
   * The image that a revision was pinned to. Pulls it when it was removed from the engine.
   *
   * @throws DeployError when it cannot be pulled, or its registry is not allowed any more
   */
  async have(
    artifact: string,
    { deployment_id, log }: Pick<InstanceOrder, "deployment_id" | "log">,
    signal?: AbortSignal,
  ): Promise<Docker.ImageInspectInfo> {
    const there = await this.#inspect(artifact);
    if (there) {
      await this.#pulled.noteUse(artifact, deployment_id);
      return there;
    }
    if (isId(artifact))
      throw new DeployError(`There is no image ${artifact} here any more, and an id cannot be pulled.`);
    const name = this.#requireListed(artifact);
    log({ at: Date.now(), level: "INFO", message: `Pulling the image ${artifact}` });
    await this.#pull(name, signal);
    const found = await this.#inspect(artifact);
    if (!found) throw new DeployError(`The image ${artifact} was pulled, and is not here.`);
    await this.#pulled.note(artifact, { id: found.Id, names: [artifact] }, deployment_id);
    return found;
  }

  async #resolve(image: string, signal: AbortSignal): Promise<string> {
    if (isId(image)) throw new DeployError(`${image} is an image id: use a name with a tag or a digest.`);
    const name = this.#requireListed(image);
    if (name.host !== THIS_MACHINE) return fullName({ ...name, version: await this.#digestOf(name, signal) });
    const found = await this.#inspect(fullName(name));
    if (!found)
      throw new DeployError(`The image ${fullName(name)} is not on the engine: build it or tag it with this name.`);
    return found.Id;
  }

  #requireListed(image: string): ImageName {
    const name = nameOf(image);
    if (!name) throw new DeployError(`"${image}" is not a valid image name.`);
    if (isListed(name, this.#registries)) return name;
    throw new DeployError(
      `The image registry ${name.host} is not allowed: add ${name.host} or ${name.repository} to ${SETTING}.`,
    );
  }

  /** Without credentials: the service has none, and callers get no access to images that need some. */
  async #digestOf(name: ImageName, signal: AbortSignal): Promise<string> {
    const asked = this.#engine.have((docker) => docker.getImage(fullName(name)).distribution());
    try {
      const { Descriptor } = await unlessAborted(
        AbortSignal.any([signal, AbortSignal.timeout(REGISTRY_TIMEOUT_MS)]),
        asked as Promise<{ Descriptor: { digest: string } }>,
      );
      return Descriptor.digest;
    } catch (error) {
      throw failureOf(error, `The registry ${name.host} did not confirm the image ${fullName(name)}`, signal);
    }
  }

  async #pull(name: ImageName, signal?: AbortSignal): Promise<void> {
    try {
      await this.#engine.have(async (docker) => {
        const query = requestParts({ fromImage: name.repository, tag: name.version });
        const progress = await docker.createImage({ ...query, ...(signal && { abortSignal: signal }) });
        // What goes wrong after the first byte is told at the end.
        await new Promise<void>((resolve, reject) =>
          docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
        );
      });
    } catch (error) {
      throw failureOf(error, `The image ${fullName(name)} could not be pulled`, signal);
    }
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

/** A DeployError, unless the engine is away or the job was aborted. */
function failureOf(error: unknown, what: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof EngineAway) return error;
  const said = saidBy(error);
  const isRefused =
    [401, 403].includes(statusOf(error) ?? 0) || /unauthorized|denied|authentication|credentials/i.test(said);
  const because = isRefused ? `it does not exist or needs credentials, and this service has none (${said})` : said;
  return new DeployError(`${what}: ${because}.`);
}
