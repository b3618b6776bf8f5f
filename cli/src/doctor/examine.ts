import type { Certificate, Node, Pod } from "@forage/proto/forage/operator/v1/operator";
import { nodeProblem } from "../view/nodes.ts";
import { podState } from "../view/pods.ts";
import { toMs } from "../view/timestamp.ts";
import { type Finding, lifetimeFinding } from "./finding.ts";
import { listed } from "./listed.ts";

/** The number of days before its expiry by which a node should have renewed its certificate. */
const NODE_CERTIFICATE_DAYS = 7;
const ROUTE_CERTIFICATE_DAYS = 14;
/**
 * The largest tolerated difference between clocks. With NTP they differ by milliseconds; at a few
 * seconds, newly issued certificates are rejected.
 */
const MAX_CLOCK_DIFFERENCE_MS = 5_000;

const OK = { state: "ok", remedy: "" } as const;

/** Returns the findings about one node. */
export function examineNode(node: Node, nowMs: number): Finding[] {
  const subject = `node/${node.name}`;
  const readiness: Finding = node.ready
    ? { subject, check: "ready", ...OK, message: "ready" }
    : {
        ...{ subject, check: "ready", state: "problem", message: nodeProblem(node, nowMs) || "not ready" },
        remedy: node.unreachable
          ? "on the host: systemctl status forage-agent, and forage-agent check"
          : `forage why node/${node.name}`,
      };
  const conditions = (node.report?.conditions ?? [])
    .filter(({ type, status }) => status === type.endsWith("Pressure"))
    .map(
      ({ type, reason, message }): Finding => ({
        ...{ subject, check: type, state: "problem", message: message || reason },
        remedy:
          type === "DiskPressure"
            ? "on the host: free space below /var/lib, or remove unused images"
            : "on the host: forage-agent check",
      }),
    );
  const ends = node.certificateEnds;
  const certificate =
    ends === undefined
      ? []
      : [
          lifetimeFinding(subject, {
            ...{ endsMs: toMs(ends), nowMs, warnDays: NODE_CERTIFICATE_DAYS },
            remedy:
              "on the host: restart forage-agent, and read its log for the reason of the failed renewal",
          }),
        ];
  return [readiness, ...conditions, ...certificate, ...gatewayFindings(node, subject)];
}

function gatewayFindings({ gateway }: Node, subject: string): Finding[] {
  if (gateway === undefined || (gateway.ready && gateway.upToDate)) return [];
  return [
    {
      ...{ subject, check: "gateway", state: "problem" },
      message:
        gateway.message || (gateway.ready ? "has not applied the newest routes" : "does not take requests"),
      remedy: "forage route ls -A, and the log of forage-agent on the host",
    },
  ];
}

/** Returns the finding about the versions of the agents. */
export function examineVersions(nodes: readonly Node[], clientVersion: string): Finding[] {
  const byVersion = new Map<string, string[]>();
  for (const { agentVersion, name } of nodes)
    if (agentVersion !== "") byVersion.set(agentVersion, [...(byVersion.get(agentVersion) ?? []), name]);
  const subject = "nodes";
  if (byVersion.size === 0) return [];
  const all = [...byVersion].map(([version, names]) => `${version} on ${listed(names)}`).join("; ");
  const isSame = byVersion.size === 1 && byVersion.has(clientVersion);
  return [
    {
      ...{ subject, check: "versions", state: isSame ? "ok" : "warning" },
      message: isSame ? `all run ${clientVersion}` : `this command is ${clientVersion}; agents: ${all}`,
      remedy: isSame ? "" : "upgrade the older ones: the coordinator first, then agents and this command",
    },
  ];
}

/** Compares the clocks by the newest heartbeat, whose time is from the coordinator. */
export function examineClock(nodes: readonly Node[], nowMs: number): Finding[] {
  const subject = "client";
  const seen = nodes
    .filter(({ ready }) => ready)
    .map(({ lastSeenAt }) => (lastSeenAt ? toMs(lastSeenAt) : 0));
  if (seen.length === 0) return [];
  const aheadMs = Math.max(...seen) - nowMs;
  // Heartbeats are some seconds apart, so an old one does not show that a clock is slow.
  const isOff = aheadMs > MAX_CLOCK_DIFFERENCE_MS || aheadMs < -6 * MAX_CLOCK_DIFFERENCE_MS;
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  return [
    {
      ...{ subject, check: "clock", state: isOff ? "problem" : "ok" },
      message: isOff
        ? `the coordinator's clock is about ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`
        : "agrees with the coordinator's",
      remedy: isOff ? "set the clock that is wrong, and keep it by NTP: timedatectl" : "",
    },
  ];
}

/** Returns the findings about the certificates of routes. */
export function examineCertificates(certificates: readonly Certificate[], nowMs: number): Finding[] {
  return certificates.flatMap(({ hostname, state, message, notAfter }) => {
    const subject = `certificate/${hostname}`;
    const remedy = `forage certificate describe ${hostname}`;
    if (state === "unused") return [];
    if (state === "failed" || state === "refused")
      return [{ subject, check: "issuing", state: "problem", message: message || state, remedy }];
    if (notAfter === undefined)
      return [{ subject, check: "issuing", state: "warning", message: message || state, remedy }];
    return [
      lifetimeFinding(subject, { endsMs: toMs(notAfter), nowMs, warnDays: ROUTE_CERTIFICATE_DAYS, remedy }),
    ];
  });
}

const FINE = new Set(["Running", "Succeeded", "Stopping", "Starting", "Draining"]);

/** Returns one finding about all pods with problems. */
export function examinePods(pods: readonly Pod[]): Finding[] {
  const bad = pods.filter((pod) => !FINE.has(podState(pod)));
  const [first] = bad;
  const subject = "pods";
  if (first === undefined)
    return [{ subject, check: "running", ...OK, message: `none of ${pods.length} has a problem` }];
  const names = bad.map((pod) => `${pod.namespace}/${pod.name} (${podState(pod)})`);
  return [
    {
      ...{ subject, check: "running", state: "warning" },
      message: `${bad.length} of ${pods.length} are not ready: ${listed(names)}`,
      remedy: `forage why ${first.name} -n ${first.namespace}`,
    },
  ];
}
