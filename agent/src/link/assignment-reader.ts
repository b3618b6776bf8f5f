import type { IdentityToken, IdentityTokens, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { HostFeatures } from "../host-features.ts";
import type { Pod } from "../pods/pod.ts";
import { parseAssignment } from "./parse-assignment.ts";

/** The newest token of each pod that is assigned; no others are kept. A map will do. */
export interface TokenStore {
  get(podUid: string): IdentityToken | undefined;
  set(podUid: string, token: IdentityToken): void;
  delete(podUid: string): void;
  keys(): Iterable<string>;
}

/**
 * Reads assignments with the newest identity token of each pod. Newer tokens come by themselves, between assignments, and are not worth
 * a write to the journal. The authority is the one that is known at that moment.
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

  /** Keeps the tokens of pods that are assigned; gives those pods as they now are. */
  renew({ byPodUid }: IdentityTokens, assigned: ReadonlyMap<string, PodAssignment>): readonly Pod[] {
    return Object.entries(byPodUid).flatMap(([uid, token]) => {
      const assignment = assigned.get(uid);
      if (assignment === undefined) return [];
      this.#newest.set(uid, token);
      return [this.read(assignment)];
    });
  }

  /** Forgets the tokens of all pods that are not assigned. */
  keepOnly(assigned: { has(uid: string): boolean }): void {
    for (const uid of [...this.#newest.keys()]) if (!assigned.has(uid)) this.#newest.delete(uid);
  }
}

function expiry({ expiresAt }: IdentityToken): bigint {
  return expiresAt?.seconds ?? 0n;
}
