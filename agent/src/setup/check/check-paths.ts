import { parseResolvConf } from "../../network/resolv-conf.ts";
import { failure, type HostCheck, ok, warning } from "./finding.ts";

/** The smallest MTU that IPv6 allows. */
const LEAST_MTU = 1_280;

/** Checks the host's name servers, which resolve pods' queries for names outside the cluster. */
export const dnsCheck: HostCheck = {
  name: "dns",
  run: async (host) => {
    const { nameservers } = parseResolvConf((await host.readText("/etc/resolv.conf")) ?? "");
    if (nameservers.length === 0)
      return [
        warning(
          "/etc/resolv.conf names no name server: pods resolve only names of services",
          "add one, or ignore this on a host that needs no other names",
        ),
      ];
    const answers = await Promise.all(nameservers.map((server) => host.nameServerAnswers(server)));
    const silent = nameservers.filter((_, index) => answers[index] === false);
    if (silent.length === 0) return [ok(`${nameservers.join(", ")} answer`)];
    const message = `name servers in /etc/resolv.conf that don't answer: ${silent.join(", ")}`;
    const remedy = "correct /etc/resolv.conf, or open port 53 to them in firewalls";
    return silent.length === nameservers.length ? [failure(message, remedy)] : [warning(message, remedy)];
  },
};

/**
 * Checks the path's MTU. If it is smaller than the link's and routers don't report that, connections hang when they
 * send large packets.
 */
export const mtuCheck: HostCheck = {
  name: "mtu",
  run: async (host, { coordinator: { host: name, port } }) => {
    const sizes = await host.pathSizes(name, port).catch(() => undefined);
    // The check of the coordinator reports why it is unreachable.
    if (sizes === undefined) return [ok(`the path to ${name} was not measured`)];
    const { link, linkMtu, pathMtu } = sizes;
    if (linkMtu < LEAST_MTU)
      return [
        warning(
          `${link} has an MTU of ${linkMtu}`,
          `ip link set ${link} mtu ${LEAST_MTU}, or more, which IPv6 requires`,
        ),
      ];
    if (pathMtu === undefined)
      return [
        ok(`${link} has an MTU of ${linkMtu}; ${name} answers no datagrams, so the path was not measured`),
      ];
    if (pathMtu === linkMtu) return [ok(`packets of ${linkMtu} bytes reach ${name}`)];
    return [
      warning(
        `${link} sends packets of ${linkMtu} bytes, and only those of up to ${pathMtu} reach ${name}`,
        `ip link set ${link} mtu ${pathMtu}, or let ICMP "fragmentation needed" through firewalls`,
      ),
    ];
  },
};
