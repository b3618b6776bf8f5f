import type {
  RebalanceMove,
  RebalanceRequest,
  RebalanceResponse,
} from "@forage/proto/forage/operator/v1/operator";
import type { Move } from "@forage/scheduler";
import type { Goal, RebalanceController } from "../../control/rebalance/controller.ts";
import { CoordinatorError } from "../../errors.ts";
import { Signal } from "../../state/signal.ts";
import type { State } from "../../state/state.ts";

export interface RebalanceOptions {
  readonly state: State;
  readonly rebalancing: Pick<RebalanceController, "suggest" | "move">;
}

const defaultMoves = 10;
const mostMoves = 100;
const mostInFlight = 20;

/** First what is planned, then how each move goes. No more moves begin when the caller goes away; those that have begun go on. */
export async function* rebalance(
  request: RebalanceRequest,
  signal: AbortSignal,
  options: RebalanceOptions,
): AsyncGenerator<RebalanceResponse> {
  const { goal, maxMoves, maxInFlight } = checked(request);
  const { moves, summary } = options.rebalancing.suggest(goal, maxMoves);
  yield { summary, moves: moves.map((move) => moveView(move, "planned")), changed: undefined };
  if (request.dryRun || moves.length === 0) return;
  const changed = new Signal();
  const stop = options.state.subscribe(() => changed.raise());
  try {
    const waiting = [...moves];
    const moving = new Map<Move, string>();
    while (!signal.aborted && (waiting.length > 0 || moving.size > 0)) {
      for (const [move, uid] of moving) {
        const done = outcomeOf(move, uid, options.state);
        if (done === undefined) continue;
        moving.delete(move);
        yield tell(move, done.state, done.message);
      }
      while (moving.size < maxInFlight && waiting.length > 0) {
        const move = waiting.shift() as Move;
        const uid = uidOf(move, options.state);
        const hindrance = await options.rebalancing.move(move.pod, summary);
        if (hindrance === undefined) moving.set(move, uid);
        yield tell(move, hindrance === undefined ? "moving" : "skipped", hindrance ?? "");
      }
      if (moving.size > 0) await changed.wait(signal);
    }
  } finally {
    stop();
  }
}

function checked({ goal, maxMoves, maxInFlight }: RebalanceRequest) {
  const goals: Readonly<Record<string, Goal>> = {
    "": "restore-spread",
    spread: "restore-spread",
    pack: "empty-nodes",
  };
  const chosen = goals[goal];
  if (chosen === undefined) throw new CoordinatorError("INVALID", `goal: "${goal}" must be spread or pack`);
  if (maxMoves > mostMoves) throw new CoordinatorError("INVALID", `max_moves: must be at most ${mostMoves}`);
  if (maxInFlight > mostInFlight)
    throw new CoordinatorError("INVALID", `max_in_flight: must be at most ${mostInFlight}`);
  return { goal: chosen, maxMoves: maxMoves || defaultMoves, maxInFlight: maxInFlight || 1 };
}

/** Undefined: it is still on its way. */
function outcomeOf(
  { pod, from }: Move,
  uid: string,
  state: State,
): { readonly state: string; readonly message: string } | undefined {
  const record = state.podByUid(uid)?.record;
  const name = pod.slice(pod.indexOf("/") + 1);
  if (record === undefined || record.stoppingSince !== undefined)
    return { state: "moved", message: `another has taken its place, and ${name} has left ${from}` };
  if (record.drainingSince !== undefined) return undefined;
  return { state: "failed", message: "no replacement became ready in time: it stays" };
}

function uidOf({ pod }: Move, state: State): string {
  const [namespace = "", name = ""] = pod.split("/");
  return state.pod(namespace, name)?.record.uid ?? "";
}

function tell(move: Move, state: string, message: string): RebalanceResponse {
  return { summary: "", moves: [], changed: moveView(move, state, message) };
}

function moveView({ pod, from, to }: Move, state: string, message = ""): RebalanceMove {
  const [namespace = "", name = ""] = pod.split("/");
  return { namespace, pod: name, from, to, state, message };
}
