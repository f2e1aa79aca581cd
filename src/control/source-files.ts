/** The source tarballs that were uploaded. */
export interface SourceFiles {
  /** One that has arrived whole; undefined when there is none of this name for the deployment. */
  find(upload: { deployment_id: string; object_path: string }): Promise<{ file: string; sha256: string } | undefined>;
  /** Removes the files of a deployment; the rows stay. Safe to repeat. */
  removeFilesOf(deployment_id: string): Promise<void>;
}
