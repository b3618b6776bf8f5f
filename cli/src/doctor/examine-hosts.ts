import type { PeerFinding } from "@forage/proto/forage/agent/v1/agent";
import type { ExamineNodesResponse } from "@forage/proto/forage/operator/v1/operator";
import type { Finding, FindingState } from "./finding.ts";
import { listed } from "./listed.ts";

/**
 * The largest tolerated difference between clocks. Beyond it, newly issued certificates may be
 * rejected.
 */
const MAX_CLOCK_DIFFERENCE_MS = 5_000;
const WARN_CLOCK_DIFFERENCE_MS = 1_000;
const NTP_REMEDY =
  "set the clock that is wrong, and keep it by NTP: timedatectl, and chrony or systemd-timesyncd";
const STATES: Readonly<Record<string, FindingState>> = { ok: "ok", warning: "warning", failure: "problem" };

/** Returns the findings of agents about their hosts, and about the network paths between them. */
export function examineHosts(examined: readonly ExamineNodesResponse[]): Finding[] {
  return [...examined.flatMap(examineHost), ...examinePaths(examined)];
}

function examineHost(examined: ExamineNodesResponse): Finding[] {
  const { node, problem, findings } = examined;
  const subject = `node/${node}`;
  const missing: Finding[] =
    problem === ""
      ? []
      : [
          {
            ...{ subject, check: "host", state: "unknown", message: `not examined: ${problem}` },
            remedy:
              "on the host: forage-agent check; agents of older versions don't support this examination",
          },
        ];
  const own = findings.map(
    ({ check, result, message, remedy }): Finding => ({
      ...{ subject, check, message },
      state: STATES[result] ?? "unknown",
      remedy: result === "ok" || remedy === "" ? remedy : `on the host: ${remedy}`,
    }),
  );
  return [...missing, ...clockFindings(examined, subject), ...own];
}

function clockFindings(
  { clockAheadMs, clockUncertaintyMs }: ExamineNodesResponse,
  subject: string,
): Finding[] {
  if (clockAheadMs === undefined) return [];
  const aheadMs = Number(clockAheadMs);
  // The duration of the measurement accounts for the rest of the difference.
  const leastMs = Math.abs(aheadMs) - clockUncertaintyMs;
  const check = "clock-difference";
  if (leastMs <= WARN_CLOCK_DIFFERENCE_MS)
    return [{ subject, check, state: "ok", message: "agrees with the coordinator's clock", remedy: "" }];
  const state = leastMs > MAX_CLOCK_DIFFERENCE_MS ? "problem" : "warning";
  const seconds = Math.round(Math.abs(aheadMs) / 100) / 10;
  const message = `the clock is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} the coordinator's`;
  return [{ subject, check, state, message, remedy: NTP_REMEDY }];
}

interface Path extends PeerFinding {
  readonly from: string;
}

/**
 * Returns the findings about network paths, by target node: several failures usually have their
 * cause there.
 */
function examinePaths(examined: readonly ExamineNodesResponse[]): Finding[] {
  const byTarget = new Map<string, Path[]>();
  for (const { node: from, peers } of examined)
    for (const peer of peers)
      byTarget.set(peer.node, [...(byTarget.get(peer.node) ?? []), { ...peer, from }]);
  return [...byTarget].flatMap(([node, paths]) => [
    ...reachFindings(`node/${node}`, node, paths),
    ...sizeFindings(`node/${node}`, node, paths),
  ]);
}

function reachFindings(subject: string, node: string, paths: readonly Path[]): Finding[] {
  const check = "reachable";
  const lost = paths.filter(({ connection }) => connection !== "open" && connection !== "refused");
  const refused = paths.filter(({ connection, serves }) => connection === "refused" && serves);
  const findings = [
    ...grouped(lost).map(([place, froms, connection]): Finding => {
      const message = `${listed(froms)} of ${paths.length} that tried can't connect to ${place}: ${reasonOf(connection)}`;
      const remedy = `open the ports of pods (hostPortRange, 20000-29999) between hosts in firewalls, or set advertiseAddress in agent.yaml of ${node}`;
      return { subject, check, state: "problem", message, remedy };
    }),
    ...grouped(refused).map(([place, froms]): Finding => {
      const message = `${listed(froms)} of ${paths.length} that tried: ${place} refuses connections, and a ready pod is served there`;
      const remedy = `look for a firewall that rejects, and for podAccess in agent.yaml of ${node}; forage get pods -A --node ${node}`;
      return { subject, check, state: "warning", message, remedy };
    }),
  ];
  if (findings.length > 0) return findings;
  return [
    { subject, check, state: "ok", message: `from ${listed(paths.map(({ from }) => from))}`, remedy: "" },
  ];
}

function sizeFindings(subject: string, node: string, paths: readonly Path[]): Finding[] {
  const measured = paths.filter(({ pathMtu }) => pathMtu > 0);
  const short = measured.filter(({ pathMtu, linkMtu }) => pathMtu < linkMtu);
  const check = "path-mtu";
  if (short.length === 0) {
    const sizes = [...new Set(measured.map(({ pathMtu }) => pathMtu))];
    const message = `packets of ${sizes.join(", ")} bytes arrive`;
    return measured.length === 0 ? [] : [{ subject, check, state: "ok", message, remedy: "" }];
  }
  return short.map(({ from, address, link, linkMtu, pathMtu }) => ({
    ...{ subject, check, state: "problem" },
    message: `${from} sends packets of ${linkMtu} bytes by ${link}, and only those of up to ${pathMtu} reach ${address}`,
    remedy: `set one MTU on the links of ${from} and ${node} (ip link set ${link} mtu ${pathMtu}), or let ICMP "fragmentation needed" through firewalls`,
  }));
}

/** Groups paths with the same target and outcome. */
function grouped(
  paths: readonly Path[],
): readonly [place: string, froms: readonly string[], connection: string][] {
  const groups = new Map<string, [string, string[], string]>();
  for (const { from, address, port, connection } of paths) {
    const place = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
    const key = `${place} ${connection}`;
    const [, froms] = groups.get(key) ?? ["", [], ""];
    groups.set(key, [place, [...froms, from], connection]);
  }
  return [...groups.values()];
}

function reasonOf(connection: string): string {
  if (connection === "silent") return "no answer, as where a firewall drops packets";
  if (connection === "EHOSTUNREACH" || connection === "ENETUNREACH")
    return `no route leads there (${connection})`;
  return connection;
}
