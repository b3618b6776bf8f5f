import type {
  AssignmentDelta,
  AssignmentSnapshot,
  ClaimRef,
  IdentityToken,
  PodAssignment,
} from "@forage/proto/forage/agent/v1/agent";
import { toEpochMs } from "../model/timestamp.ts";
import { REFRESH_SHARE } from "../objects/identity-issuer.ts";
import type { ObjectEntry, PodEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import { assignmentBytes } from "./assignments.ts";

/** The node's desired state. */
export interface RequestedState {
  readonly pods: readonly PodEntry[];
  /** The claims whose data the node has to remove. */
  readonly claimRemovals: readonly ObjectEntry[];
}

export interface OutboxOptions {
  readonly assignments: {
    readonly fingerprint: (pod: PodEntry) => string;
    readonly of: (pod: PodEntry) => PodAssignment;
    readonly identityToken: (pod: PodEntry) => IdentityToken | undefined;
  };
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** The size in bytes at which a message is sent and the next part begins. */
  readonly partBytes?: number;
}

/**
 * The default size of a part. It is well below the limit of messages that agents accept, which leaves time for other
 * messages.
 */
const DEFAULT_PART_BYTES = 1024 * 1024;

/** Is shared by all sessions, because hardly any node has claims to remove. */
const NO_CLAIMS: ReadonlySet<string> = new Set();

/**
 * The times at which a pod's identity token was issued and has to be replaced, by the wall clock and by the monotonic
 * clock.
 */
interface TokenTimes {
  readonly issuedMs: number;
  readonly refreshAtMs: number;
  readonly dueMs: number;
}

/**
 * Tracks the state that one session has sent, and computes the difference to the desired state. Several changes of a pod
 * are sent in one message.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  /** Fingerprints of the sent pods, by uid. */
  readonly #pods = new Map<string, string>();
  #claims: ReadonlySet<string> = NO_CLAIMS;
  /** The times of the pods' tokens, by uid. Undefined: there was no token so far. */
  #tokens: Map<string, TokenTimes> | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Yields everything assigned to the node, in parts. */
  *snapshot({ pods, claimRemovals }: RequestedState, revision: bigint): Generator<AssignmentSnapshot> {
    this.#pods.clear();
    this.#claims = ordersOf(claimRemovals);
    for (const { part, more } of this.#parts(pods)) {
      yield { revision, pods: part, more, claimRemovals: more ? [] : claimRemovals.map(refOf) };
    }
  }

  /** Yields the changes since the last message, in parts. Yields nothing without changes. */
  *delta({ pods, claimRemovals }: RequestedState, revision: bigint): Generator<AssignmentDelta> {
    const { assignments } = this.#options;
    const changed = pods.filter((pod) => this.#pods.get(pod.record.uid) !== assignments.fingerprint(pod));
    const present = new Set(pods.map((pod) => pod.record.uid));
    const removals = [...this.#pods.keys()].filter((uid) => !present.has(uid));
    const claims = claimRemovals.filter((claim) => !this.#claims.has(orderOf(claim)));
    this.#claims = ordersOf(claimRemovals);
    if (changed.length === 0 && removals.length === 0 && claims.length === 0) return;
    for (const uid of removals) {
      this.#pods.delete(uid);
      this.#tokens?.delete(uid);
    }
    for (const { part, more } of this.#parts(changed)) {
      const last = more
        ? { removals: [], claimRemovals: [] }
        : { removals, claimRemovals: claims.map(refOf) };
      yield { revision, upserts: part, more, ...last };
    }
  }

  /**
   * Returns new identity tokens for pods whose current ones expire soon. A token from before the clock was set back is
   * replaced as well, because verifiers reject a token that was issued in the future.
   */
  dueTokens(pods: readonly PodEntry[]): Record<string, IdentityToken> | undefined {
    const due: Record<string, IdentityToken> = {};
    for (const pod of pods) {
      const { uid, stoppingSince } = pod.record;
      const times = this.#tokens?.get(uid);
      if (times === undefined || this.#delayMs(times) > 0) continue;
      const token = stoppingSince === undefined ? this.#options.assignments.identityToken(pod) : undefined;
      this.#noteToken(uid, token);
      if (token !== undefined) due[uid] = token;
    }
    return Object.keys(due).length === 0 ? undefined : due;
  }

  /** Returns the milliseconds until `dueTokens` returns a token, unless the clock is changed. Undefined: never. */
  tokenDelayMs(): number | undefined {
    const delays = [...(this.#tokens?.values() ?? [])].map((times) => this.#delayMs(times));
    return delays.length === 0 ? undefined : Math.min(...delays);
  }

  #delayMs({ issuedMs, refreshAtMs, dueMs }: TokenTimes): number {
    const { clock } = this.#options;
    const nowMs = clock.nowMs();
    return nowMs < issuedMs ? 0 : Math.max(0, Math.min(refreshAtMs - nowMs, dueMs - clock.monotonicMs()));
  }

  /** Yields the parts one by one as they are sent, because all secrets of a node together would use too much memory. */
  *#parts(pods: readonly PodEntry[]): Generator<{ readonly part: PodAssignment[]; readonly more: boolean }> {
    const { assignments, partBytes = DEFAULT_PART_BYTES } = this.#options;
    let part: PodAssignment[] = [];
    let bytes = 0;
    for (const pod of pods) {
      const fingerprint = assignments.fingerprint(pod);
      const assignment = assignments.of(pod);
      const size = assignmentBytes(assignment);
      if (part.length > 0 && bytes + size > partBytes) {
        yield { part, more: true };
        part = [];
        bytes = 0;
      }
      part.push(assignment);
      bytes += size;
      this.#pods.set(pod.record.uid, fingerprint);
      this.#noteToken(pod.record.uid, assignment.identityToken);
    }
    yield { part, more: false };
  }

  #noteToken(uid: string, token: IdentityToken | undefined): void {
    const expiresMs = toEpochMs(token?.expiresAt);
    if (expiresMs === undefined) this.#tokens?.delete(uid);
    else {
      const { clock } = this.#options;
      const issuedMs = clock.nowMs();
      const lifeMs = (expiresMs - issuedMs) * REFRESH_SHARE;
      this.#tokens ??= new Map();
      this.#tokens.set(uid, {
        issuedMs,
        refreshAtMs: issuedMs + lifeMs,
        dueMs: clock.monotonicMs() + lifeMs,
      });
    }
  }
}

function ordersOf(removals: readonly ObjectEntry[]): ReadonlySet<string> {
  return removals.length === 0 ? NO_CLAIMS : new Set(removals.map(orderOf));
}

/** Returns the identity of a removal: a claim that was removed, created again and deleted again is a different one. */
function orderOf({ key, revision }: ObjectEntry): string {
  return `${key} ${revision}`;
}

function refOf({ name }: ObjectEntry): ClaimRef {
  return { namespace: name.namespace, name: name.name };
}
