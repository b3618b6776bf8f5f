import { messageOf } from "@forage/common/message-of";
import type { VirtualClock } from "@forage/common/virtual-clock";
import type { ApplyResourcesRequest, RolloutStatus } from "@forage/proto/forest/v1/forage";
import { watchRollout } from "../../coordinator/src/api/forage/watch-rollout.ts";
import { isTerminal } from "../../coordinator/src/control/rollout/progress.ts";
import { CoordinatorError } from "../../coordinator/src/errors.ts";
import { StoreError } from "../../coordinator/src/store/index.ts";
import { clientContext, type SimCoordinator } from "./sim-coordinator.ts";
import type { Blame } from "./violation.ts";

export interface ClientsOptions {
  readonly time: VirtualClock;
  /** Returns the coordinator that accepts calls now, if any. */
  readonly coordinator: () => SimCoordinator | undefined;
  /** The codes of errors after which a call is retried. Default: CONFLICT. */
  readonly retried?: ReadonlySet<string>;
  readonly blame: Blame;
  readonly note: (what: string) => void;
}

const RETRY_MS = 1_000;
/** The codes of errors that no call of the simulation may ever get. */
const FAULTS: ReadonlySet<string> = new Set(["INTERNAL", "INVALID", "UNIMPLEMENTED", "PERMISSION_DENIED"]);

const WAITED_FOR: ReadonlySet<string> = new Set([
  "NO_SPACE",
  "UNAVAILABLE",
  "UNCONFIRMED",
  "IO_ERROR",
  "LEAD_LOST",
]);
const RETRIED: ReadonlySet<string> = new Set(["CONFLICT"]);

type Run = (coordinator: SimCoordinator) => Promise<unknown>;

/** Clients of the coordinator. They retry calls after a coordinator died, and remember its answers. */
export class Clients {
  readonly #options: ClientsOptions;
  /** Rollouts that the clients have not seen end. */
  readonly watching = new Set<string>();
  readonly rollouts = new Set<string>();
  readonly #lanes = new Map<string, Promise<void>>();
  #calls = 0;

  constructor(options: ClientsOptions) {
    this.#options = options;
  }

  /** The number of calls without an answer. */
  get open(): number {
    return this.#calls;
  }

  /** Applies a bundle. The requests of one lane are made one after another. */
  apply(lane: string, request: ApplyResourcesRequest): void {
    this.#until(lane, `apply ${request.applyId}`, async (coordinator) => {
      const { rolloutId } = await coordinator.forage.applyResources(request, clientContext(coordinator.life));
      this.#options.note(`${request.applyId} is rollout ${rolloutId}`);
      this.rollouts.add(rolloutId);
      this.watching.add(rolloutId);
      void this.#watch(rolloutId, coordinator);
    });
  }

  delete(lane: string, namespace: string, labels: Record<string, string>): void {
    this.#until(lane, "delete", async (coordinator) => {
      await coordinator.forage.deleteResources({ namespace, labels }, clientContext(coordinator.life));
    });
  }

  /** Makes any call of an operator that may be retried. */
  call(lane: string, what: string, run: (coordinator: SimCoordinator) => Promise<unknown>): void {
    this.#until(lane, what, async (coordinator) => {
      await run(coordinator);
    });
  }

  /** Opens streams again after a coordinator has restarted. */
  resume(coordinator: SimCoordinator): void {
    for (const id of this.watching) void this.#watch(id, coordinator);
  }

  async #watch(id: string, coordinator: SimCoordinator): Promise<void> {
    const { rollouts } = coordinator.core.control;
    const last = new Map<string, RolloutStatus>();
    try {
      for await (const event of watchRollout(id, rollouts, coordinator.life)) {
        const key = `${event.resourceKind}/${event.resourceName}`;
        const before = last.get(key);
        if (before !== undefined && isTerminal(before) && before !== event.status)
          this.#options.blame(`watchers of ${id} saw ${key} end twice`);
        last.set(key, event.status);
      }
    } catch (error) {
      if (coordinator.dead) return;
      if (!(error instanceof CoordinatorError && error.code === "NOT_FOUND")) throw error;
      this.#options.blame(`rollout ${id} is not known any more`);
    }
    if (coordinator.dead) return;
    const open = [...last].filter(([, status]) => !isTerminal(status));
    if (open.length > 0)
      this.#options.blame(`the stream of ${id} ended before ${open.map(([key]) => key).join(", ")}`);
    this.watching.delete(id);
  }

  /** Makes the calls of each lane one after another, and each one until it is answered. */
  #until(lane: string, what: string, run: Run): void {
    this.#calls++;
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    this.#lanes.set(
      lane,
      before
        .then(() => this.#answer(what, run))
        .then(() => {
          this.#calls--;
        }),
    );
  }

  async #answer(what: string, run: Run): Promise<void> {
    for (;;) {
      const coordinator = this.#options.coordinator();
      const answered = coordinator !== undefined && (await this.#attempt(what, run, coordinator));
      if (answered) return;
      await new Promise<void>((resolve) => this.#options.time.schedule(RETRY_MS, resolve));
    }
  }

  /** Makes one attempt, and returns whether it was answered. A coordinator that dies doesn't answer. */
  async #attempt(what: string, run: Run, coordinator: SimCoordinator): Promise<boolean> {
    const { life } = coordinator;
    const { promise: died, resolve: die } = Promise.withResolvers<boolean>();
    const onDeath = (): void => die(false);
    life.addEventListener("abort", onDeath, { once: true });
    try {
      return await Promise.race([died, run(coordinator).then(() => true)]);
    } catch (error) {
      if (coordinator.dead) return false;
      // The disk is full, etcd does not answer, or another coordinator leads. The call is retried until that changes.
      if (error instanceof StoreError && WAITED_FOR.has(error.code)) return false;
      const code = error instanceof CoordinatorError ? error.code : "INTERNAL";
      this.#options.note(`${what} fails: ${messageOf(error)}`);
      if (FAULTS.has(code)) this.#options.blame(`${what}: ${error instanceof Error ? error.stack : error}`);
      return !(this.#options.retried ?? RETRIED).has(code);
    } finally {
      life.removeEventListener("abort", onDeath);
    }
  }
}
