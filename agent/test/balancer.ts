import { argv, exit, stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../src/clock.ts";
import { HeldAddressesFile } from "../src/load-balancer/held-addresses-file.ts";
import { LoadBalancer } from "../src/load-balancer/load-balancer.ts";
import { runCommand } from "../src/network/run-command.ts";

/**
 * `balancer DIR JSON` announces addresses in its network namespace, as an agent does. Its state is the argument, and
 * then each line of its input: `{ ips, alone, heard, started }`. It prints one event on each line.
 */
const [dir = "", first = "{}"] = argv.slice(2);
const services = new Map<string, ServiceState>();
const receive = (text: string): { heard: boolean; started: boolean } => {
  const { ips = [], alone = false, heard = true, started = true } = JSON.parse(text);
  const service = { loadBalancerIps: ips, announcedBy: "here", announcedAlone: alone };
  services.set("shop/web", ServiceState.fromPartial(service));
  return { heard, started };
};
const begin = receive(first);
const balancer = new LoadBalancer({
  held: await HeldAddressesFile.open(dir),
  services: { services, clusterDomain: "", virtualIpRanges: [] },
  node: "here",
  interface: undefined,
  families: [4, 6],
  clock: systemClock,
  random: Math.random,
  run: runCommand,
  onEvent: (event, fields) => stdout.write(`${event} ${JSON.stringify(fields)}\n`),
  onProblem: (event, error) => stdout.write(`${event} ${error}\n`),
});
balancer.setCurrent(begin.heard);
if (begin.started) await balancer.start();
stdout.write("ready\n");
for await (const line of createInterface(stdin)) {
  const { heard, started } = receive(line);
  balancer.setCurrent(heard);
  await (started ? balancer.start() : balancer.update());
}
await balancer.close();
exit(0);
