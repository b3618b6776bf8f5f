import { mkdirSync } from "node:fs";
import { messageOf } from "@forage/common/message-of";
import { driverFor } from "../lab-hosts/host-kinds.ts";
import { Lab } from "../lab-hosts/lab.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { labPaths } from "../lab-hosts/lab-state.ts";
import { claimLab } from "./claim-lab.ts";

/**
 * Boots a bare host of the kind, runs a command on it and removes it. Returns the reason if this machine can't do that, as
 * without the rights to mount and to make namespaces, or without a mirror of Debian. No program of Forage takes part.
 */
export async function tryLab(kind: string, report: (detail: string) => void): Promise<string | undefined> {
  const { name, release } = await claimLab();
  try {
    await driverFor(kind, name).prepare(report);
    const lab = await Lab.create(name, kind, planHosts({ count: 1, coordinatorOwnHost: false }));
    mkdirSync(labPaths(name).packages, { recursive: true });
    await lab.boot(lab.coordinator.name);
    await lab.exec(lab.coordinator.name, ["true"]);
    return undefined;
  } catch (error) {
    return messageOf(error);
  } finally {
    await release();
  }
}
