import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { run } from "../lib/run.ts";

/** Removes the load-balancer addresses of a dead agent from the host. Some of them don't expire by themselves. */
export async function dropHeldAddresses(agentData: string): Promise<void> {
  for (const { ip, interface: device } of readHeldAddresses(agentData)) {
    const prefix = isIP(ip) === 4 ? 32 : 128;
    // The address or its interface may already be gone.
    await run("ip", ["address", "del", `${ip}/${prefix}`, "dev", device], { allowFailure: true });
  }
}

function readHeldAddresses(agentData: string): { readonly ip: string; readonly interface: string }[] {
  try {
    const held = JSON.parse(readFileSync(join(agentData, "load-balancer", "held-addresses.json"), "utf8"));
    return Array.isArray(held)
      ? held.filter((it) => isIP(String(it?.ip)) !== 0 && typeof it?.interface === "string")
      : [];
  } catch {
    return [];
  }
}
