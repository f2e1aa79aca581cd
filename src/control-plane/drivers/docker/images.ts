import type Docker from "dockerode";
import { unlessAborted } from "../../../platform/lib/signal.ts";
import { type BuildIo, DeployError, type ImageSpec, type InstanceSpec, infoLine } from "../driver.ts";
import { fullName, type ImageName, isId, LOCAL_HOST, requireListed } from "../image-name.ts";
import {
  type Engine,
  EngineUnavailableError,
  engineMessage,
  separateParts,
  statusOf,
  undefinedIfMissing,
  undefinedOnStatus,
} from "./engine.ts";
import type { PulledImages } from "./pulled-images.ts";

const REGISTRY_TIMEOUT_MS = 60_000;

export class Images {
  readonly #engine: Engine;
  readonly #pulled: PulledImages;
  readonly #registries: readonly string[];

  /** @param registries allowed registry hosts or repository prefixes */
  constructor(engine: Engine, pulled: PulledImages, registries: readonly string[]) {
    this.#engine = engine;
    this.#pulled = pulled;
    this.#registries = registries;
  }

  /**
   * Resolves an image name, unless it is pinned, to its digest in the registry, or to an image ID if the name is local. Pulls a missing
   * image. The registry is queried for a digest even if the image exists locally, because another user may have pulled a private image.
   *
   * @throws DeployError when the image does not exist, is not allowed or cannot be pulled, or when Docker is unavailable
   */
  async pin({ image, deployment_id, pinned }: ImageSpec, { log, signal }: BuildIo): Promise<string> {
    try {
      if (!isId(image)) this.#requireListed(image);
      const artifact = pinned ? image : await this.#resolve(image, signal);
      await this.ensure(artifact, { deployment_id, log }, signal);
      return artifact;
    } catch (error) {
      if (error instanceof EngineUnavailableError) throw new DeployError(error.message);
      throw error;
    }
  }

  /**
   * Returns the pinned image of a revision. Pulls the image if it does not exist locally.
   *
   * @throws DeployError when the image cannot be pulled, or the registry is no longer allowed
   */
  async ensure(
    artifact: string,
    { deployment_id, log }: Pick<InstanceSpec, "deployment_id" | "log">,
    signal?: AbortSignal,
  ): Promise<Docker.ImageInspectInfo> {
    const existing = await this.#inspect(artifact);
    if (existing) {
      await this.#pulled.addUser(artifact, deployment_id);
      return existing;
    }
    if (isId(artifact))
      throw new DeployError(
        `The image ${artifact} was removed from the Docker Engine, and an image ID cannot be pulled. Build the image again and create a new revision.`,
      );
    const name = this.#requireListed(artifact);
    log(infoLine(`Pulling the image ${artifact}`));
    await this.#pull(name, signal);
    const found = await this.#inspect(artifact);
    if (!found)
      throw new DeployError(`The image ${artifact} was pulled, but does not exist in the Docker Engine. Deploy again.`);
    await this.#pulled.add(artifact, { id: found.Id, names: [artifact] }, deployment_id);
    return found;
  }

  async #resolve(image: string, signal: AbortSignal): Promise<string> {
    if (isId(image)) throw new DeployError(`${image} is an image ID: use a name with a tag or a digest.`);
    const name = this.#requireListed(image);
    if (name.host !== LOCAL_HOST) return fullName({ ...name, version: await this.#digestOf(name, signal) });
    const found = await this.#inspect(fullName(name));
    if (!found)
      throw new DeployError(
        `The image ${fullName(name)} does not exist in the Docker Engine: build an image with this name, or tag an existing image with it.`,
      );
    return found.Id;
  }

  #requireListed = (image: string): ImageName => requireListed(image, this.#registries);

  /** Looks up the digest of an image in its registry without credentials, so that callers cannot use private images. */
  async #digestOf(name: ImageName, signal: AbortSignal): Promise<string> {
    const request = this.#engine.callLong((docker) => docker.getImage(fullName(name)).distribution());
    try {
      const { Descriptor } = await unlessAborted(
        AbortSignal.any([signal, AbortSignal.timeout(REGISTRY_TIMEOUT_MS)]),
        request as Promise<{ Descriptor: { digest: string } }>,
      );
      return Descriptor.digest;
    } catch (error) {
      throw failureOf(error, `The image ${fullName(name)} could not be looked up in the registry ${name.host}`, signal);
    }
  }

  async #pull(name: ImageName, signal?: AbortSignal): Promise<void> {
    try {
      await this.#engine.callLong(async (docker) => {
        const query = separateParts({ fromImage: name.repository, tag: name.version });
        const progress = await docker.createImage({ ...query, ...(signal && { abortSignal: signal }) });
        // Errors that occur after the response has started are reported in the stream.
        await new Promise<void>((resolve, reject) =>
          docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
        );
      });
    } catch (error) {
      throw failureOf(error, `The image ${fullName(name)} could not be pulled`, signal);
    }
  }

  /** Removes the images that were pulled for a deployment, unless another deployment, a container or another name refers to them. */
  release(deployment_id: string): Promise<void> {
    return this.#pulled.release(deployment_id, async ({ id, names }) => {
      for (const name of names) {
        if ((await this.#inspect(name))?.Id !== id) continue;
        await this.#engine.callLong((docker) => undefinedOnStatus(docker.getImage(name).remove(), 404, 409));
      }
    });
  }

  #inspect(name: string): Promise<Docker.ImageInspectInfo | undefined> {
    return this.#engine.call((docker) => undefinedIfMissing(docker.getImage(name).inspect()));
  }
}

/** Converts an error to a DeployError, unless Docker is unavailable or the job was aborted. */
function failureOf(error: unknown, problem: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof EngineUnavailableError) return error;
  const message = engineMessage(error);
  const isRefused =
    [401, 403].includes(statusOf(error) ?? 0) || /unauthorized|denied|authentication|credentials/i.test(message);
  const reason = isRefused
    ? `the image does not exist or is private (${message}). This service pulls only public images: correct the image name, or make the image public`
    : message;
  return new DeployError(`${problem}: ${reason}.`);
}
