import { nodeProblems } from "../model/node-conditions.ts";
import type { NodeEntry } from "../state/entries.ts";
import { type Cause, cause, type Diagnosis } from "./cause.ts";

export interface NodeInput {
  readonly node: NodeEntry;
  readonly pods: number;
  /**
   * The pods for which a drain waits, with the reasons; undefined if the node is not being drained.
   */
  readonly drainWaits: readonly string[] | undefined;
  readonly nowMs: number;
}

/** Explains why a node is not ready, or accepts no pods. */
export function explainNode({ node, pods, drainWaits, nowMs }: NodeInput): Diagnosis {
  const { name, health, record, report } = node;
  const causes: Cause[] = [];
  if (record.revoked)
    causes.push(
      cause("Revoked", "its certificates are refused", "make a token and join it again: forage token create"),
    );
  if (!health.ready) {
    const since =
      health.lastSeenMs === undefined
        ? ""
        : `; last heartbeat ${Math.round((nowMs - health.lastSeenMs) / 1000)} s ago`;
    const left =
      pods === 0
        ? ""
        : ` Its ${pods} pods are replaced on other nodes when their toleration ends; \`forage node remove ${name}\` removes it for good.`;
    const advice = `check the host, and run systemctl status forage-agent on it.${left}`;
    causes.push(
      cause(
        "NodeLost",
        `${health.message || "it has sent no heartbeat since the coordinator started"}${since}`,
        advice,
      ),
    );
  }
  for (const { message } of nodeProblems(report?.report))
    causes.push(
      cause("NodeProblem", message, "it accepts no new pods until this problem ends; check the host"),
    );
  if (drainWaits !== undefined) {
    const message =
      drainWaits.length === 0
        ? "its pods are leaving it"
        : `it is being drained and waits for ${drainWaits.length} pods`;
    causes.push(cause("Draining", message, "", drainWaits));
  }
  if (record.unschedulable)
    causes.push(cause("Cordoned", "it accepts no new pods", `forage node uncordon ${name}`));
  const taints = record.taints.map(
    ({ key, value, effect }) => `${key}${value === "" ? "" : `=${value}`}:${effect}`,
  );
  const healthy = causes.length === 0;
  if (taints.length > 0)
    causes.push(
      cause(
        "Tainted",
        "it accepts only pods that tolerate its taints",
        `forage node untaint ${name} KEY:EFFECT`,
        taints,
      ),
    );
  const [first] = causes;
  const summary = healthy ? `node ${name} is ready` : `node ${name}: ${first?.message}`;
  return { summary, healthy, causes };
}
