import { existsSync } from "node:fs";
import { pid } from "node:process";
import type { TestContext } from "node:test";
import { runCommand } from "../src/network/run-command.ts";

/** The address under which other hosts reach the host under test. */
export const HOST_ADDRESS = "10.9.0.1";
export const OUTSIDE_ADDRESS = "10.9.0.2";
export const HOST_ADDRESS6 = "fd09::1";
export const OUTSIDE_ADDRESS6 = "fd09::2";
const UPLINK = "uplink0";

/** Creates another host: a namespace connected to this one by a link. Returns its name. */
export async function makeOutsideHost(t: TestContext): Promise<string> {
  const name = `fgt-${pid}-outside`;
  t.after(async () => {
    await runCommand("ip", ["link", "del", UPLINK]); // Programs that still end there would keep it.
    await runCommand("ip", ["netns", "del", name]);
  });
  await runCommand("ip", ["netns", "add", name]);
  const inside = ["-n", name];
  await runCommand("ip", ["link", "add", UPLINK, "type", "veth", "peer", "name", "eth0", "netns", name]);
  await runCommand("ip", ["address", "add", `${HOST_ADDRESS}/24`, "dev", UPLINK]);
  await runCommand("ip", ["link", "set", UPLINK, "up"]);
  await runCommand("ip", [...inside, "address", "add", `${OUTSIDE_ADDRESS}/24`, "dev", "eth0"]);
  for (const link of ["lo", "eth0"]) await runCommand("ip", [...inside, "link", "set", link, "up"]);
  if (existsSync("/proc/net/if_inet6")) {
    await runCommand("ip", ["address", "add", `${HOST_ADDRESS6}/64`, "dev", UPLINK, "nodad"]);
    await runCommand("ip", [...inside, "address", "add", `${OUTSIDE_ADDRESS6}/64`, "dev", "eth0", "nodad"]);
  }
  return name;
}
