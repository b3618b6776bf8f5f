import { setTimeout as delay } from "node:timers/promises";
import { type ApplyResourcesRequest, type RolloutEvent, RolloutStatus } from "@forage/proto/forest/v1/forage";
import { type ServiceError, status } from "@grpc/grpc-js";
import { applyKey } from "../../coordinator/src/model/keys.ts";
import type { Member } from "../../coordinator/test/support/coordinator-cluster.ts";
import { aContainerService, aRequest } from "../../coordinator/test/support/requests.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";

const NAMESPACE = "shop";
/** The machine may be busy with other tests. */
const LIMIT_MS = 180_000;
/** The interval of retries. Like usual clients, these retry on UNAVAILABLE only, with jitter. */
const RETRY_MS = 200;

interface Acknowledged {
  readonly applyId: string;
  readonly rolloutId: string;
  end: RolloutEvent | undefined;
}

/** Clients that each change one workload repeatedly through any coordinator, and watch each rollout to its end. */
export class ApplyLoad {
  readonly acknowledged: Acknowledged[] = [];
  /** Errors other than UNAVAILABLE, and UNAVAILABLE errors without a reason. */
  readonly failures: string[] = [];
  /** The number of retries. */
  retries = 0;
  /** The reasons for which calls failed and were retried. */
  readonly reasons = new Set<string>();
  readonly #members: readonly Member[];
  /** A prefix that distinguishes its ids from those of earlier loads. */
  readonly #name = Math.random().toString(36).slice(2, 8);
  readonly #stopping = new AbortController();
  /** The current step of each workload's client. */
  readonly #steps = new Map<string, string>();
  readonly #running: Promise<unknown>;

  constructor(
    members: readonly Member[],
    request: (workload: string, version: number) => ApplyResourcesRequest,
  ) {
    this.#members = members;
    this.#running = Promise.all(
      ["app-a", "app-b"].map((workload) => this.#change(workload, request).catch(() => {})),
    );
  }

  /** The number of rollouts that have ended. */
  get ended(): number {
    return this.acknowledged.filter(({ end }) => end !== undefined).length;
  }

  /** Ends after the current rollouts. Rejects if one of them doesn't end. */
  async end(): Promise<void> {
    this.#stopping.abort();
    let hasEnded = false;
    void this.#running.then(() => {
      hasEnded = true;
    });
    await waitFor(() => hasEnded, {
      ...{ what: "all rollouts have ended", limitMs: LIMIT_MS },
      explain: () => [...this.#steps.values()].join("\n"),
    });
  }

  /** Returns the acknowledged calls that are not in the store exactly once, and the rollouts that did not succeed. */
  problems(puts: ReadonlyMap<string, number>): string[] {
    return this.acknowledged.flatMap(({ applyId, end }) => {
      const times = puts.get(applyKey(NAMESPACE, applyId)) ?? 0;
      return [
        ...(times === 1 ? [] : [`${applyId} was acknowledged and is ${times} times in the store`]),
        ...(end?.status === RolloutStatus.SUCCEEDED
          ? []
          : [`the rollout of ${applyId} ended as ${end?.status}: ${end?.message}`]),
      ];
    });
  }

  async #change(
    workload: string,
    request: (workload: string, version: number) => ApplyResourcesRequest,
  ): Promise<void> {
    for (let version = 1; !this.#stopping.signal.aborted; version++) {
      const made = request(workload, version);
      const sent = { ...made, applyId: `${made.applyId}-${this.#name}` };
      const { rolloutId } = await this.#retried((member) => {
        this.#steps.set(workload, `${sent.applyId} is applied at ${member.address}`);
        return member.forage.applyResources(sent);
      });
      const entry: Acknowledged = { applyId: sent.applyId, rolloutId, end: undefined };
      this.acknowledged.push(entry);
      let end: RolloutEvent | undefined;
      // The streams of a coordinator that stops end normally, and the client watches at another one.
      while (!isFinal(end))
        end = await this.#retried((member) =>
          watched(member, rolloutId, (step) =>
            this.#steps.set(workload, `${sent.applyId} is watched at ${member.address}: ${step}`),
          ),
        );
      entry.end = end;
    }
  }

  async #retried<T>(call: (member: Member) => Promise<T>): Promise<T> {
    for (let at = Math.floor(Math.random() * this.#members.length); ; at++) {
      const member = this.#members[at % this.#members.length];
      if (member === undefined) throw new RangeError("there is no coordinator");
      try {
        return await call(member);
      } catch (error) {
        const { code, details = "" } = error as ServiceError;
        // A coordinator that is cut off must not deny calls that another one has acknowledged either.
        if (code !== status.UNAVAILABLE || details === "") {
          this.failures.push(`${code} ${details}`);
          throw error;
        }
        this.retries++;
        this.reasons.add(details.replace(/\d+(\.\d+)*/g, "N"));
        await delay(RETRY_MS * (0.5 + Math.random()));
      }
    }
  }
}

/** Returns the workload with two replicas. Each version replaces the last one. */
export function aVersion(workload: string, version: number): ApplyResourcesRequest {
  const container = { name: "main", image: "localhost/forage/busybox:1", args: [`v${version}`] };
  const spec = { scaling: { replicas: 2 }, container };
  const labels = { bundle: workload };
  return aRequest(`${workload}-${version}`, [aContainerService(workload, spec)], labels);
}

function isFinal(event: RolloutEvent | undefined): boolean {
  return event !== undefined && FINAL.has(event.status);
}

const FINAL: ReadonlySet<RolloutStatus> = new Set([
  RolloutStatus.SUCCEEDED,
  RolloutStatus.FAILED,
  RolloutStatus.ROLLED_BACK,
]);

/** Returns the last event of the rollout. */
async function watched(
  member: Member,
  rolloutId: string,
  show: (step: string) => void,
): Promise<RolloutEvent | undefined> {
  let last: RolloutEvent | undefined;
  show("nothing yet");
  for await (const event of member.forage.watchRollout({ rolloutId })) {
    last = event;
    show(`${event.status} ${event.message}`);
  }
  return last;
}
