import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { NodeWitness } from "./fleet-node.ts";
import type { Blame } from "./violation.ts";

/** Rules for events on hosts, independent of the stored records. */
export class HostRules implements NodeWitness {
  readonly #blame: Blame;
  /** The node that each pod was assigned to. */
  readonly #nodes = new Map<string, string>();
  readonly #removed = new Set<string>();
  /** Uids of pods of which a container has ended or that were removed. */
  readonly gone = new Set<string>();

  readonly #onEnd: (uid: string, exitCode: number) => void;

  constructor(blame: Blame, onEnd: (uid: string, exitCode: number) => void) {
    this.#blame = blame;
    this.#onEnd = onEnd;
  }

  assigned(node: string, { uid, name, stopping }: PodAssignment): void {
    const known = this.#nodes.get(uid);
    if (known !== undefined && known !== node)
      this.#blame(`pod ${name} was given to ${known} and to ${node}`);
    if (this.#removed.has(uid) && !stopping)
      this.#blame(`pod ${name} was given to ${node} after it was removed`);
    this.#nodes.set(uid, node);
  }

  starts(node: string, { uid, name, stopping }: PodAssignment): void {
    if (this.#removed.has(uid)) this.#blame(`pod ${name} started on ${node} after it was removed`);
    if (stopping) this.#blame(`pod ${name} started on ${node} though it is to stop`);
  }

  ended(_node: string, { uid }: PodAssignment, exitCode: number): void {
    this.gone.add(uid);
    this.#onEnd(uid, exitCode);
  }

  removed(_node: string, { uid }: PodAssignment): void {
    this.gone.add(uid);
    this.#removed.add(uid);
  }

  violation(what: string): void {
    this.#blame(what);
  }
}
