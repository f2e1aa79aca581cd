import { openAsBlob } from "node:fs";
import type { UploadUrl } from "../../control-plane/contract/deployments.ts";
import type { Deployment, Revision } from "../../control-plane/contract/records.ts";
import { CommandError, type Target } from "../command.ts";
import { requestJson } from "../service-client.ts";
import {
  checkDeployed,
  findByName,
  getRevision,
  printProgress,
  type RevisionKey,
  type WaitFlags,
  waitForRevision,
} from "./deployments.ts";
import { buildLogReader, readLastLogs } from "./logs.ts";
import { createArchive, listSource, type Project, readDeployProject, type SourceArchive } from "./project.ts";

export interface DeployFlags extends WaitFlags {
  config?: string;
  name?: string;
  deploymentType: "dev_free" | "dev" | "prod";
  installCommand?: string;
  buildCommand?: string;
}

const MEGABYTE = 2 ** 20;
const LARGE_BYTES = 50 * MEGABYTE;

/** @throws CommandError when the revision is not deployed */
export async function deploy(folder: string, flags: DeployFlags, target: Target): Promise<void> {
  const project = await readDeployProject(folder, flags, process.env);
  if (project.reserved.length > 0)
    printProgress(
      `These variables are not sent as secrets, because their names are reserved: ${project.reserved.join(", ")}.`,
    );
  const archive = await archiveProject(project);
  let deployment: Deployment;
  try {
    const { id } = await findOrCreate(project, flags, target);
    deployment = await createRevision(archive, id, project, flags, target);
  } finally {
    await archive.remove();
  }
  const key = { deployment_id: deployment.id, revision_id: deployment.latest_revision_id as string };
  const { status } = await (flags.wait ? followDeployment(key, flags, target) : getRevision(target, key));
  const url = deployment.source_config.custom_url ?? "";
  if (flags.json) console.log(JSON.stringify({ ...key, name: project.name, status, url }));
  else if (flags.wait) console.log(`Deployed "${project.name}": ${url}`);
  else console.log(`Deploying revision ${key.revision_id} of "${project.name}": ${url}`);
}

async function archiveProject({ folder, env_file }: Project): Promise<SourceArchive> {
  const { paths: listed, links } = await listSource(folder);
  const paths = listed.filter((path) => path !== env_file);
  if (links.length > 0)
    printProgress(
      `Skipped symbolic links: ${links.slice(0, 5).join(", ")}${links.length > 5 ? `, and ${links.length - 5} more` : ""}.`,
    );
  const archive = await createArchive(folder, paths);
  printProgress(`Packed ${paths.length} files from ${folder} (${(archive.bytes / MEGABYTE).toFixed(1)} MB).`);
  if (archive.bytes > LARGE_BYTES)
    printProgress("The upload is large: use a .dockerignore file to exclude unneeded files.");
  return archive;
}

async function findOrCreate({ name }: Project, { deploymentType }: DeployFlags, target: Target): Promise<Deployment> {
  const found = await findByName(target, name);
  if (found) return found;
  printProgress(`Creating deployment "${name}".`);
  const source_config = { deployment_type: deploymentType };
  const body = { name, source: "internal_source", source_config, source_revision_config: {}, secrets: [] };
  return requestJson<Deployment>(target, "POST", "/v2/deployments", body);
}

async function createRevision(
  archive: SourceArchive,
  id: string,
  project: Project,
  flags: DeployFlags,
  target: Target,
): Promise<Deployment> {
  const path = `/v2/deployments/${id}`;
  const { upload_url, object_path } = await requestJson<UploadUrl>(target, "POST", `${path}/upload-url`);
  await upload(archive, upload_url);
  const { installCommand: install_command, buildCommand: build_command } = flags;
  const commands = { ...(install_command && { install_command }), ...(build_command && { build_command }) };
  return requestJson<Deployment>(target, "PATCH", path, {
    revision_source: "internal_source",
    source_revision_config: { source_tarball_path: object_path, langgraph_config_path: project.config_path },
    ...(Object.keys(commands).length > 0 && { source_config: commands }),
    ...(project.secrets && { secrets: project.secrets }),
  });
}

async function upload({ file }: SourceArchive, url: string): Promise<void> {
  const headers = { "content-type": "application/gzip" };
  const answer = await fetch(url, { method: "PUT", headers, body: await openAsBlob(file) }).catch((error: Error) => {
    throw new CommandError(
      `The source upload failed: ${(error.cause as Error)?.message ?? error.message}. Run the command again.`,
    );
  });
  if (!answer.ok)
    throw new CommandError(`The service rejected the source upload (${answer.status}: ${await answer.text()}).`);
}

async function followDeployment(key: RevisionKey, { timeout }: DeployFlags, target: Target): Promise<Revision> {
  const readNewLines = buildLogReader(target, key);
  const revision = await waitForRevision(target, key, timeout, async () => {
    for (const { message } of await readNewLines()) printProgress(`  ${message}`);
  });
  if (revision.status === "DEPLOY_FAILED")
    for (const { message } of await readLastLogs(target, key)) printProgress(`  ${message}`);
  checkDeployed(revision);
  return revision;
}
