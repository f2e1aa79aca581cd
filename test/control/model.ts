import type { RevisionStatus } from "../../src/control-plane/storage/schema.ts";

/** What clients and the world do to a deployment. */
export const COMMANDS = ["create", "release", "interrupt", "redeploy", "kill", "delete"] as const;

export interface Command {
  name: (typeof COMMANDS)[number];
  /** The behaviour of a revision that it makes. */
  ref: string;
  /** Which of the revisions that it could be about. */
  pick: number;
}

export const REFS = [
  "main",
  "build-held",
  "build-held-run-held",
  "build-fails",
  "build-trouble",
  "build-flaky",
  "run-held",
  "run-never",
  "run-dies",
  "run-falls",
  "run-refused",
  "run-trouble",
  "run-flaky",
] as const;

export interface ModelRevision {
  ref: string;
  status: RevisionStatus;
  built: boolean;
  released: boolean;
  served: boolean;
}

/** What becomes of a deployment, without any of the how: where its revisions are when nothing happens any more. */
export class Model {
  revisions: ModelRevision[] = [];
  active: number | undefined;
  deleted = false;
  /** Revisions that were deployed, the last one last: the builds of five are kept. */
  #deployed: number[] = [];

  #isUnderWay = ({ status }: ModelRevision) => ["QUEUED", "BUILDING", "DEPLOYING"].includes(status);

  get underWay(): number[] {
    return this.revisions.flatMap((revision, n) => (this.#isUnderWay(revision) ? [n] : []));
  }

  get held(): number[] {
    return this.revisions.flatMap(({ status }, n) => (status === "BUILDING" || status === "DEPLOYING" ? [n] : []));
  }

  get redeployable(): number[] {
    return this.underWay.length > 0 ? [] : this.#deployed.slice(-5).sort((a, b) => a - b);
  }

  create(ref: string): void {
    const waits = this.underWay.length > 0;
    for (const revision of this.revisions) if (revision.status === "QUEUED") revision.status = "SKIPPED";
    const revision: ModelRevision = { ref, status: "QUEUED", built: false, released: false, served: false };
    this.revisions.push(revision);
    if (!waits) this.#build(this.revisions.length - 1);
  }

  release(n: number): void {
    const revision = this.revisions[n] as ModelRevision;
    revision.released = true;
    if (revision.status === "BUILDING") this.#build(n);
    else if (revision.status === "DEPLOYING") this.#deploy(n);
    this.#next();
  }

  interrupt(n: number): void {
    (this.revisions[n] as ModelRevision).status = "INTERRUPTED";
    this.#next();
  }

  redeploy(n: number): void {
    this.#deploy(n);
  }

  #build(n: number): void {
    const revision = this.revisions[n] as ModelRevision;
    const { ref, released } = revision;
    if (ref.includes("build-held") && !released) revision.status = "BUILDING";
    else if (/build-(fails|trouble)/.test(ref)) revision.status = "BUILD_FAILED";
    else {
      revision.built = true;
      this.#deploy(n);
    }
  }

  #deploy(n: number): void {
    const revision = this.revisions[n] as ModelRevision;
    const { ref, released } = revision;
    if (revision.served) this.#deployed = [...this.#deployed.filter((other) => other !== n), n];
    if (ref.includes("run-held") && !released) revision.status = "DEPLOYING";
    else if (/run-(never|dies|refused|trouble)/.test(ref)) revision.status = "DEPLOY_FAILED";
    else {
      revision.status = "DEPLOYED";
      revision.served = true;
      this.#deployed = [...this.#deployed.filter((other) => other !== n), n];
      this.active = n;
    }
  }

  /** The queue has one place. */
  #next(): void {
    const queued = this.revisions.findIndex(({ status }) => status === "QUEUED");
    if (queued >= 0 && this.held.length === 0) this.#build(queued);
  }
}
