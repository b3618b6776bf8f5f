import { messageOf } from "@forage/common/message-of";
import { assertNoOverlap, listRoutes } from "../../network/host-links.ts";
import { instanceNames } from "../../network/instance-names.ts";
import { parsePodCidr } from "../../network/pod-cidr.ts";
import { type CheckedHost, failure, type HostCheck, ok, warning } from "./finding.ts";

export const portsCheck: HostCheck = {
  name: "ports",
  run: async (host, { http: { listen }, hostPortRange: { first, last } }) => {
    const findings = [];
    if (listen !== undefined && !(await host.agentAnswers(listen.host, listen.port))) {
      const problem = await host.listenProblem(listen.host, listen.port);
      const address = `${listen.host}:${listen.port}`;
      if (problem !== undefined)
        findings.push(failure(`${address}: ${problem}`, "stop the program that has it, or set http.listen"));
    }
    const range = (await host.readText("/proc/sys/net/ipv4/ip_local_port_range"))
      ?.trim()
      .split(/\s+/)
      .map(Number);
    const [from = Number.POSITIVE_INFINITY, to = 0] = range ?? [];
    if (from <= last && to >= first)
      findings.push(
        warning(
          `the host's own connections use ports ${from}-${to}, and pods' ports are ${first}-${last}`,
          "set net.ipv4.ip_local_port_range or hostPortRange so that they don't overlap",
        ),
      );
    return findings.length > 0 ? findings : [ok(`pods' ports ${first}-${last}`)];
  },
};

export const networkCheck: HostCheck = {
  name: "network",
  run: async (host, { instance, podCidr }) => {
    try {
      const routes = await listRoutes(asRunCommand(host), 4);
      assertNoOverlap(instanceNames(instance).bridge, parsePodCidr(podCidr), routes);
    } catch (error) {
      return [
        failure(
          messageOf(error),
          "set podCidr in agent.yaml to a range that the host does not reach otherwise",
        ),
      ];
    }
    return [ok(`pod network ${podCidr}`)];
  },
};

/**
 * Checks whether the coordinator is reachable, and compares the clocks: certificates are valid from a few minutes
 * before they are created, which happens at the coordinator's start.
 */
export const coordinatorCheck: HostCheck = {
  name: "coordinator",
  run: async (host, { coordinator }) => {
    const address = `${coordinator.host}:${coordinator.port}`;
    try {
      const { fromMs, toMs } = await host.certificatePeriod(coordinator.host, coordinator.port);
      const nowMs = host.nowMs();
      if (nowMs >= fromMs && nowMs <= toMs) return [ok(`${address} answers`)];
      const period = `${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}`;
      const message = `the clock says ${new Date(nowMs).toISOString()}, and the certificate of ${address} is valid from ${period}`;
      return [
        failure(message, "compare the clocks of this host and of the coordinator, and set the wrong one"),
      ];
    } catch (error) {
      const remedy = "set coordinator in agent.yaml, open the port in firewalls, or start the coordinator";
      return [failure(`${address}: ${messageOf(error)}`, remedy)];
    }
  },
};

export const clockCheck: HostCheck = {
  name: "clock",
  run: async (host) => {
    const { ok: isKnown, text } = await host.run("timedatectl", [
      "show",
      "--property=NTPSynchronized",
      "--value",
    ]);
    if (isKnown && text.trim() === "yes") return [ok("the clock is synchronized")];
    const message = isKnown ? "the clock is not synchronized" : `timedatectl: ${text}`;
    return [warning(message, "apt install systemd-timesyncd or chrony; certificates depend on the clock")];
  },
};

/** Runs commands through `host`, so that tests need no network. */
function asRunCommand(host: CheckedHost) {
  return async (file: string, args: readonly string[]): Promise<string> => {
    const { ok: succeeded, text } = await host.run(file, args);
    if (!succeeded) throw new Error(`${file}: ${text}`);
    return text;
  };
}
