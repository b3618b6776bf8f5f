import type { IdentityToken, IdentityTokens, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { HostFeatures } from "../host-features.ts";
import type { Pod } from "../pods/pod.ts";
import { parseAssignment } from "./parse-assignment.ts";

/** Stores the newest token of each assigned pod. A Map implements it. */
export interface TokenStore {
  get(podUid: string): IdentityToken | undefined;
  set(podUid: string, token: IdentityToken): void;
  delete(podUid: string): void;
  keys(): Iterable<string>;
}

/**
 * Parses assignments with the newest identity token of each pod and the current authority. Newer tokens arrive
 * separately from assignments, and are not worth a write to the journal.
 */
export class AssignmentReader {
  readonly #host: HostFeatures;
  readonly #newest: TokenStore;
  readonly #authorityPem: () => string | undefined;

  constructor(host: HostFeatures, tokens: TokenStore, authorityPem: () => string | undefined) {
    this.#host = host;
    this.#newest = tokens;
    this.#authorityPem = authorityPem;
  }

  read(assignment: PodAssignment): Pod {
    const { uid, identityToken: given } = assignment;
    const newest = this.#newest.get(uid);
    const isNewer = newest !== undefined && (given === undefined || expiry(newest) > expiry(given));
    const current = isNewer ? { ...assignment, identityToken: newest } : assignment;
    return parseAssignment(current, this.#host, this.#authorityPem());
  }

  /** Stores the tokens of assigned pods, and returns these pods with their new tokens. */
  renew({ byPodUid }: IdentityTokens, assigned: ReadonlyMap<string, PodAssignment>): readonly Pod[] {
    return Object.entries(byPodUid).flatMap(([uid, token]) => {
      const assignment = assigned.get(uid);
      if (assignment === undefined) return [];
      this.#newest.set(uid, token);
      return [this.read(assignment)];
    });
  }

  /** Deletes the tokens of all pods that are not assigned. */
  keepOnly(assigned: { has(uid: string): boolean }): void {
    for (const uid of [...this.#newest.keys()]) if (!assigned.has(uid)) this.#newest.delete(uid);
  }
}

function expiry({ expiresAt }: IdentityToken): bigint {
  return expiresAt?.seconds ?? 0n;
}
