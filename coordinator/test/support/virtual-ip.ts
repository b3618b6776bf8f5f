import { until } from "./until.ts";
import type { World } from "./world.ts";

/** Waits until a service has a virtual IP, and returns it. */
export async function virtualIpOf(world: World, name: string): Promise<string> {
  let ip = "";
  await until(`${name} has a virtual IP`, async () => {
    const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
    ip = resources.find((r) => r.kind === "service" && r.name === name)?.virtualIps[0] ?? "";
    return ip !== "";
  });
  return ip;
}
