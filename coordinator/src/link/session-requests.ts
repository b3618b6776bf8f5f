import type { ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Clock } from "../time/clock.ts";
import { nextHeartbeatMs } from "./heartbeat-interval.ts";
import type { HistoryGuard } from "./history-guard.ts";
import type { Session } from "./sessions.ts";
import type { StartGate } from "./start-gate.ts";

interface EarlyOptions {
  readonly gate: StartGate;
  readonly clock: Clock;
}

interface RefusedOptions {
  readonly state: ClusterView;
  readonly history: HistoryGuard;
  readonly clock: Clock;
}

/**
 * Serves a node while the store is out of date. The node keeps its assignment and receives only session requests, such as
 * for logs.
 */
export async function* sendRequests(
  session: Session,
  signal: AbortSignal,
  { state, history, clock }: RefusedOptions,
): AsyncGenerator<ConnectResponse> {
  const health = state.node(session.node)?.health;
  if (health !== undefined && history.refusal !== undefined)
    state.setNodeHealth(session.node, { ...health, message: history.refusal }, true);
  while (!signal.aborted) {
    yield* dueToSession(session, clock);
    await session.wake.wait(signal);
  }
}

/** Serves a node until decisions may be sent. Until then the node keeps its assignment. */
export async function* sendEarlyRequests(
  session: Session,
  signal: AbortSignal,
  { gate, clock }: EarlyOptions,
): AsyncGenerator<ConnectResponse> {
  if (gate.isOver) return;
  const wake = (): void => session.wake.raise();
  gate.opened.then(wake, wake);
  while (!signal.aborted && !gate.isOver) {
    yield* dueToSession(session, clock);
    await session.wake.wait(signal);
  }
}

/** Yields what is sent to a node even if it receives no assignments: session requests and the answer to a heartbeat. */
export function* dueToSession(session: Session, clock: Clock): Generator<ConnectResponse> {
  for (const value of session.requests.splice(0)) yield { message: { $case: "session", value } };
  if (!session.answerDue) return;
  session.answerDue = false;
  yield heartbeatAnswer(session, clock);
}

/**
 * Answers a heartbeat at once. If that isn't possible, the session's loop sends the answer. Objects that the loop
 * allocates for an answer live until the next one, and were half of the garbage collector's copies with thousands of
 * idle nodes.
 */
export function answerHeartbeat(session: Session, clock: Clock): void {
  if (session.sendNow?.(heartbeatAnswer(session, clock))) return;
  session.answerDue = true;
  session.wake.raise();
}

function heartbeatAnswer({ heartbeatIntervalMs }: Session, clock: Clock): ConnectResponse {
  const nextMs = nextHeartbeatMs(clock.monotonicMs(), heartbeatIntervalMs);
  return { message: { $case: "heartbeatAnswer", value: { nextMs } } };
}
