import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { run } from "../lib/run.ts";

/** Takes addresses of load balancers off the host that an agent announced, which is dead: some of them have no end by themselves. */
export async function dropHeldAddresses(agentData: string): Promise<void> {
  for (const { ip, interface: device } of heldBy(agentData)) {
    const prefix = isIP(ip) === 4 ? 32 : 128;
    // It may be gone already, or its interface.
    await run("ip", ["address", "del", `${ip}/${prefix}`, "dev", device], { allowFailure: true });
  }
}

function heldBy(agentData: string): { readonly ip: string; readonly interface: string }[] {
  try {
    const held = JSON.parse(readFileSync(join(agentData, "load-balancer", "held-addresses.json"), "utf8"));
    return Array.isArray(held)
      ? held.filter((it) => isIP(String(it?.ip)) !== 0 && typeof it?.interface === "string")
      : [];
  } catch {
    return [];
  }
}
