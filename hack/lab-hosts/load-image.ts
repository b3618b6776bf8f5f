import type { Lab } from "./lab.ts";

/** Loads an OCI archive into containerd on these hosts, so they need no registry. */
export async function loadImage(lab: Lab, hosts: readonly string[], archivePath: string): Promise<void> {
  await Promise.all(
    hosts.map(async (host) => {
      const path = "/root/image.tar";
      await lab.copy(host, archivePath, path);
      await lab.exec(host, ["ctr", "--namespace", "forage", "images", "import", path]);
      await lab.exec(host, ["rm", path]);
    }),
  );
}
