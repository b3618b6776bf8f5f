import type { Random } from "@forage/common/random";
import { lengthMs } from "./disturb.ts";
import type { HostTrouble } from "./fleet-node.ts";
import type { World } from "./world.ts";

const TROUBLES: readonly HostTrouble[] = [
  "calls-fail",
  "calls-time-out",
  "events-are-lost",
  "starts-fail",
  "pulls-fail",
  "probes-fail",
  "mounts-hang",
];

/** Causes one fault of a host, or none. */
export function disturbHost({ nodes }: World, random: Random): void {
  const node = random.pick(nodes);
  const choice = random.next();
  if (choice < 0.35) {
    const trouble = random.pick(TROUBLES);
    node.troubleHost(trouble, lengthMs(random));
    // The missing container is then only noticed when containers are listed.
    if (trouble === "events-are-lost") node.removeContainer();
  } else if (choice < 0.45) node.removeContainer();
}
