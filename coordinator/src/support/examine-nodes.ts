import { messageOf } from "@forage/common/message-of";
import { ExamineOptions } from "@forage/proto/forage/agent/v1/agent";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { ExamineNodesResponse } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import type { SessionBroker } from "../link/session-broker.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Clock } from "../time/clock.ts";
import { choosePeers } from "./choose-peers.ts";

export interface ExamineNodesOptions {
  readonly state: Pick<ClusterView, "node" | "nodes" | "podsOnNode">;
  readonly broker: Pick<SessionBroker, "open">;
  readonly clock: Clock;
}

/** The time limit of an examination; the checks of a host take some seconds. */
const NODE_LIMIT_MS = 45_000;
const MAX_NODES = 100;
const NODES_AT_ONCE = 10;
/** The most findings of one node, far more than an agent of this version sends. */
const MAX_FINDINGS = 200;

/** Returns the RPC that lets agents examine their hosts. One examination runs at a time. */
export function examineNodesHandler(
  options: ExamineNodesOptions,
): (request: wire.ExamineNodesRequest, context: CallContext) => AsyncGenerator<ExamineNodesResponse> {
  let isBusy = false;
  return async function* ({ nodes }, { signal }) {
    const names = chooseNodes(nodes, options.state);
    if (isBusy)
      throw new CoordinatorError("RESOURCE_EXHAUSTED", "the nodes are being examined: try again in a minute");
    isBusy = true;
    // Ends the sessions when the caller disconnects.
    const over = new AbortController();
    try {
      const either = AbortSignal.any([signal, over.signal]);
      for (let first = 0; first < names.length && !signal.aborted; first += NODES_AT_ONCE) {
        const some = names.slice(first, first + NODES_AT_ONCE);
        yield* await Promise.all(some.map((name) => examineNode(name, either, options)));
      }
    } finally {
      over.abort();
      isBusy = false;
    }
  };
}

function chooseNodes(
  names: readonly string[],
  state: Pick<ClusterView, "node" | "nodes">,
): readonly string[] {
  if (names.length > MAX_NODES)
    throw new CoordinatorError("INVALID", `nodes: at most ${MAX_NODES} are examined in one call`);
  const unknown = names.find((name) => state.node(name) === undefined);
  if (unknown !== undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there is no node "${unknown}": \`forage node ls\` lists the nodes`,
    );
  if (names.length > 0) return [...new Set(names)];
  const connected = state.nodes().filter(({ health }) => health.ready);
  return connected.slice(0, MAX_NODES).map(({ name }) => name);
}

async function examineNode(
  node: string,
  signal: AbortSignal,
  { state, broker, clock }: ExamineNodesOptions,
): Promise<ExamineNodesResponse> {
  const found = ExamineNodesResponse.fromPartial({ node });
  const over = new AbortController();
  let isLate = false;
  const cancel = clock.schedule(NODE_LIMIT_MS, () => {
    isLate = true;
    over.abort();
  });
  const late = `the examination did not end within ${NODE_LIMIT_MS / 1000} s`;
  try {
    const value = ExamineOptions.fromPartial({ peers: [...choosePeers(node, state)] });
    const kind = { $case: "examine", value } as const;
    const either = AbortSignal.any([signal, over.signal]);
    const sent = { atMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    const tunnel = broker.open(node, { podUid: "", container: "", kind }, either, "doctor");
    try {
      for await (const { frame } of tunnel.fromAgent) {
        if (frame?.$case === "end") {
          const { error } = frame.value;
          return error === "" ? found : { ...found, problem: error };
        }
        if (frame?.$case !== "examination") continue;
        const { at, findings, peers } = frame.value;
        if (at !== undefined && found.clockAheadMs === undefined) {
          // The agent read its clock at some moment during the round trip.
          const halfMs = (clock.monotonicMs() - sent.monotonicMs) / 2;
          found.clockAheadMs = BigInt(Math.round(toEpochMs(at) - (sent.atMs + halfMs)));
          found.clockUncertaintyMs = Math.ceil(halfMs);
        }
        found.findings.push(...findings.slice(0, MAX_FINDINGS - found.findings.length));
        found.peers.push(...peers.slice(0, MAX_FINDINGS - found.peers.length));
      }
      return { ...found, problem: isLate ? late : "the agent's stream ended early" };
    } finally {
      tunnel.toAgent.close();
      over.abort();
    }
  } catch (error) {
    return { ...found, problem: isLate ? late : messageOf(error) };
  } finally {
    cancel();
  }
}
