import type {
  RebalanceMove,
  RebalanceRequest,
  RebalanceResponse,
} from "@forage/proto/forage/operator/v1/operator";
import type { Move } from "@forage/scheduler";
import {
  MOVE_DEADLINE_MS,
  type RebalanceController,
  type RebalanceGoal,
} from "../../control/rebalance/controller.ts";
import { CoordinatorError } from "../../errors.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Signal } from "../../state/signal.ts";
import type { Clock } from "../../time/clock.ts";

export interface RebalanceOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly rebalancing: Pick<RebalanceController, "suggest" | "move">;
}

const DEFAULT_MOVES = 10;
const MOST_MOVES = 100;
const MOST_IN_FLIGHT = 20;

/**
 * Yields the planned moves, and then the progress of each. When the caller leaves, no more moves begin, and the started
 * ones continue.
 */
export async function* rebalance(
  request: RebalanceRequest,
  signal: AbortSignal,
  options: RebalanceOptions,
): AsyncGenerator<RebalanceResponse> {
  const { goal, maxMoves, maxInFlight } = checked(request);
  const { moves, summary } = options.rebalancing.suggest(goal, maxMoves);
  yield { summary, moves: moves.map((move) => moveView(move, "planned")), changed: undefined };
  if (request.dryRun || moves.length === 0) return;
  const run = new Run(moves, summary, maxInFlight, options);
  const stop = options.state.subscribe(() => run.changed.raise());
  try {
    while (!signal.aborted && !run.over) {
      for (const event of await run.step()) yield event;
      if (!run.over) await run.wait(signal);
    }
  } finally {
    stop();
  }
}

/** The moves of one request. Each begins when a slot is free and its workload has settled. */
class Run {
  readonly changed = new Signal();
  readonly #options: RebalanceOptions;
  readonly #summary: string;
  readonly #maxInFlight: number;
  readonly #moving = new Map<Move, string>();
  #waiting: readonly Move[];
  /** The monotonic time since which no move could begin. */
  #idleSinceMs: number;

  constructor(moves: readonly Move[], summary: string, maxInFlight: number, options: RebalanceOptions) {
    this.#waiting = moves;
    this.#summary = summary;
    this.#maxInFlight = maxInFlight;
    this.#options = options;
    this.#idleSinceMs = options.clock.monotonicMs();
  }

  get over(): boolean {
    return this.#waiting.length === 0 && this.#moving.size === 0;
  }

  async step(): Promise<RebalanceResponse[]> {
    const { state, clock } = this.#options;
    const responses: RebalanceResponse[] = [];
    for (const [move, uid] of this.#moving) {
      const done = outcomeOf(move, uid, state);
      if (done === undefined) continue;
      this.#moving.delete(move);
      responses.push(responseOf(move, done.state, done.message));
    }
    const later: Move[] = [];
    for (const move of this.#waiting) {
      const event = this.#moving.size < this.#maxInFlight ? await this.#begin(move) : undefined;
      if (event === undefined) later.push(move);
      else responses.push(event);
    }
    this.#waiting = later;
    if (responses.length > 0) this.#idleSinceMs = clock.monotonicMs();
    return responses;
  }

  async #begin(move: Move): Promise<RebalanceResponse | undefined> {
    const { state, rebalancing, clock } = this.#options;
    const uid = uidOf(move, state);
    const start = await rebalancing.move(move.pod, this.#summary);
    if (start.type === "begun") this.#moving.set(move, uid);
    if (start.type === "begun") return responseOf(move, "moving", "");
    const patient = clock.monotonicMs() - this.#idleSinceMs < MOVE_DEADLINE_MS;
    return start.type === "later" && patient ? undefined : responseOf(move, "skipped", start.why);
  }

  /** Waits until a relevant change, or until the timeout. */
  async wait(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const leftMs = this.#idleSinceMs + MOVE_DEADLINE_MS - clock.monotonicMs();
    const cancel = clock.schedule(Math.max(LEAST_WAIT_MS, leftMs), () => this.changed.raise());
    await this.changed.wait(signal);
    cancel();
  }
}

const LEAST_WAIT_MS = 1_000;

function checked({ goal, maxMoves, maxInFlight }: RebalanceRequest) {
  const goals: Readonly<Record<string, RebalanceGoal>> = {
    "": "restore-spread",
    spread: "restore-spread",
    pack: "empty-nodes",
  };
  const chosen = goals[goal];
  if (chosen === undefined) throw new CoordinatorError("INVALID", `goal: "${goal}" must be spread or pack`);
  if (maxMoves > MOST_MOVES)
    throw new CoordinatorError("INVALID", `max_moves: must be at most ${MOST_MOVES}`);
  if (maxInFlight > MOST_IN_FLIGHT)
    throw new CoordinatorError("INVALID", `max_in_flight: must be at most ${MOST_IN_FLIGHT}`);
  return { goal: chosen, maxMoves: maxMoves || DEFAULT_MOVES, maxInFlight: maxInFlight || 1 };
}

/** Returns the outcome of a move. Undefined: it is in progress. */
function outcomeOf(
  { pod, from }: Move,
  uid: string,
  state: ClusterView,
): { readonly state: string; readonly message: string } | undefined {
  const record = state.podByUid(uid)?.record;
  const name = pod.slice(pod.indexOf("/") + 1);
  if (record === undefined || record.stoppingSince !== undefined)
    return { state: "moved", message: `a replacement is ready, and ${name} has left ${from}` };
  if (record.drainingSince !== undefined) return undefined;
  return { state: "failed", message: "no replacement became ready in time, so the pod stays" };
}

function uidOf({ pod }: Move, state: ClusterView): string {
  const [namespace = "", name = ""] = pod.split("/");
  return state.pod(namespace, name)?.record.uid ?? "";
}

function responseOf(move: Move, state: string, message: string): RebalanceResponse {
  return { summary: "", moves: [], changed: moveView(move, state, message) };
}

function moveView({ pod, from, to }: Move, state: string, message = ""): RebalanceMove {
  const [namespace = "", name = ""] = pod.split("/");
  return { namespace, pod: name, from, to, state, message };
}
