import { messageOf } from "@forage/common/message-of";
import { copyDependencies, ensureHostImage } from "../lab-hosts/host-image.ts";
import { driverFor } from "../lab-hosts/host-kinds.ts";
import { usePackages } from "../lab-hosts/install-fleet.ts";
import { Lab } from "../lab-hosts/lab.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { loadImage } from "../lab-hosts/load-image.ts";
import { writePackageIndex } from "../lab-hosts/package-repository.ts";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { claimLab } from "./claim-lab.ts";

const IMAGE = "localhost/forage/busybox:1";
/** A script that uses the kernel features that Forage needs on a host, with Debian's programs only. */
const TRIAL = [
  "ip netns add trial",
  "nft add table inet trial",
  `ctr --namespace forage run --rm --with-ns network:/run/netns/trial ${IMAGE} trial true`,
].join(" && ");

/**
 * Boots a host of the kind, runs a container on it and removes it. Returns the reason if this machine can't do that,
 * for example because it may not mount or make namespaces, or can't reach a mirror of Debian. Uses no program of
 * Forage.
 */
export async function tryLab(kind: string, report: (detail: string) => void): Promise<string | undefined> {
  const { name, release } = await claimLab();
  try {
    try {
      const driver = driverFor(kind, name);
      await driver.prepare(report);
      const hosts = planHosts({ count: 1, coordinatorOwnHost: false, gateway: driver.gateway });
      await tryHost(await Lab.create(name, kind, hosts));
    } finally {
      await release();
    }
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

async function tryHost(lab: Lab): Promise<void> {
  const host = lab.coordinator;
  const packages = lab.path("packages");
  copyDependencies(await ensureHostImage(() => {}), packages);
  await writePackageIndex(packages);
  await lab.boot(host.name);
  await usePackages(lab, host);
  await lab.exec(host.name, ["apt-get", "-qq", "--yes", "install", "containerd", "runc", "nftables"]);
  await loadImage(lab, [host.name], await buildBusyboxImage({ name: IMAGE }));
  await lab.exec(host.name, ["sh", "-c", TRIAL]);
}
