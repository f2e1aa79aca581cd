import { openAsBlob } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Deployment, DeploymentsList, Revision } from "../../control-plane/contract/records.ts";
import { printable } from "../../platform/lib/printable.ts";
import { getRevision } from "../deployments/find.ts";
import { askControl, type Target } from "../experiments/api.ts";
import { CommandError } from "../experiments/command-error.ts";
import { BuildLog, lastLines } from "./build-log.ts";
import { type Packed, pack } from "./pack.ts";
import { type Project, readDeployProject } from "./project.ts";
import { listSource } from "./source-files.ts";

export interface DeployFlags {
  config?: string;
  name?: string;
  deploymentType: "dev_free" | "dev" | "prod";
  installCommand?: string;
  buildCommand?: string;
  wait: boolean;
  timeout: number;
  json?: boolean;
}

const POLL_MS = 500;
const MEGABYTE = 2 ** 20;
const LARGE_BYTES = 50 * MEGABYTE;
const FAILED: readonly string[] = ["CREATE_FAILED", "BUILD_FAILED", "DEPLOY_FAILED", "INTERRUPTED"];

/** A revision that is under way. */
interface Begun {
  deployment_id: string;
  revision_id: string;
}

/**
 * Packs a folder, uploads it as a new revision of its deployment, and waits until that serves. How far it is goes to standard
 * error, the result to standard output.
 *
 * @throws CommandError when the revision does not come to serve
 */
export async function deploy(folder: string, flags: DeployFlags, target: Target): Promise<void> {
  const project = await readDeployProject(folder, flags, process.env);
  if (project.reserved.length > 0)
    tell(`Not sent as secrets, as the service sets them itself: ${project.reserved.join(", ")}.`);
  const packed = await packProject(project);
  let deployment: Deployment;
  try {
    const { id } = await findOrCreate(project, flags, target);
    deployment = await reviseWith(packed, id, project, flags, target);
  } finally {
    await packed.drop();
  }
  const begun = { deployment_id: deployment.id, revision_id: deployment.latest_revision_id as string };
  const revision = flags.wait ? await follow(begun, flags, target) : await statusOf(begun, target);
  const url = deployment.source_config.custom_url ?? "";
  if (flags.json) console.log(JSON.stringify({ ...begun, name: project.name, status: revision.status, url }));
  else if (flags.wait) console.log(`"${project.name}" serves this revision at ${url}`);
  else console.log(`Revision ${begun.revision_id} of "${project.name}" is under way; it will serve at ${url}`);
}

const tell = (text: string) => console.error(printable(text));

async function packProject({ folder }: Project): Promise<Packed> {
  const { paths, links } = await listSource(folder);
  if (links.length > 0) tell(`Links are not packed: ${links.slice(0, 5).join(", ")}${links.length > 5 ? " ..." : ""}.`);
  const packed = await pack(folder, paths);
  tell(`Packed ${paths.length} files of ${folder} (${(packed.bytes / MEGABYTE).toFixed(1)} MB).`);
  if (packed.bytes > LARGE_BYTES) tell("That is a lot: a .dockerignore says what is not needed.");
  return packed;
}

async function findOrCreate({ name }: Project, { deploymentType }: DeployFlags, target: Target): Promise<Deployment> {
  const query = new URLSearchParams({ name_contains: name, limit: "1" });
  const { resources } = (await askControl(target, "GET", `/v2/deployments?${query}`)) as DeploymentsList;
  const [found] = resources;
  if (found?.name === name) return found;
  tell(`Creating the deployment "${name}".`);
  const source_config = { deployment_type: deploymentType };
  const order = { name, source: "internal_source", source_config, source_revision_config: {}, secrets: [] };
  return (await askControl(target, "POST", "/v2/deployments", order)) as Deployment;
}

/** Uploads the source, and makes a revision of it. */
async function reviseWith(packed: Packed, id: string, project: Project, flags: DeployFlags, target: Target) {
  const permission = await askControl(target, "POST", `/v2/deployments/${id}/upload-url`);
  const { upload_url, object_path } = permission as { upload_url: string; object_path: string };
  await put(packed, upload_url);
  const { installCommand: install_command, buildCommand: build_command } = flags;
  const commands = { ...(install_command && { install_command }), ...(build_command && { build_command }) };
  return (await askControl(target, "PATCH", `/v2/deployments/${id}`, {
    revision_source: "internal_source",
    source_revision_config: { source_tarball_path: object_path, langgraph_config_path: project.config_path },
    ...(Object.keys(commands).length > 0 && { source_config: commands }),
    ...(project.secrets && { secrets: project.secrets }),
  })) as Deployment;
}

async function put({ file }: Packed, url: string): Promise<void> {
  const headers = { "content-type": "application/gzip" };
  const answer = await fetch(url, { method: "PUT", headers, body: await openAsBlob(file) }).catch((error: Error) => {
    throw new CommandError(`The source could not be uploaded: ${(error.cause as Error)?.message ?? error.message}.`);
  });
  if (!answer.ok) throw new CommandError(`The source was not taken (${answer.status}: ${await answer.text()}).`);
}

const statusOf = ({ deployment_id, revision_id }: Begun, target: Target) =>
  getRevision(target, deployment_id, revision_id);

/** Tells what the build writes and how far the revision is, until it serves. */
async function follow(begun: Begun, { timeout }: DeployFlags, target: Target): Promise<Revision> {
  const deadline = Date.now() + timeout * 1000;
  const log = new BuildLog(target, begun);
  for (let told = ""; ; await pause(POLL_MS)) {
    const revision = await statusOf(begun, target);
    for (const { message } of await log.more()) tell(`  ${message}`);
    const { status } = revision;
    if (status !== told) tell(`${status}${status === "DEPLOYED" ? "" : " ..."}`);
    told = status;
    if (status === "DEPLOYED") return revision;
    if (status === "SKIPPED") throw new CommandError(`A newer revision has taken the place of ${begun.revision_id}.`);
    if (FAILED.includes(status)) throw await failure(begun, revision, target);
    if (Date.now() > deadline)
      throw new CommandError(`Revision ${begun.revision_id} is still ${status} after ${timeout} s; it goes on.`);
  }
}

async function failure(begun: Begun, { status, status_message }: Revision, target: Target): Promise<CommandError> {
  if (status === "DEPLOY_FAILED")
    for (const { message } of await lastLines(target, begun, "deploy_logs")) tell(`  ${message}`);
  return new CommandError(
    `The revision ${begun.revision_id} was not deployed (${status}): ${status_message ?? "no reason is known."} What served before still does.`,
  );
}
