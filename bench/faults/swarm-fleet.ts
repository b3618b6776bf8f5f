import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyDependencies, ensureHostImage } from "../../hack/lab-hosts/host-image.ts";
import { usePackages } from "../../hack/lab-hosts/install-fleet.ts";
import type { Lab } from "../../hack/lab-hosts/lab.ts";
import { writePackageIndex } from "../../hack/lab-hosts/package-repository.ts";
import { debianArchive } from "../../hack/lib/debian-archive.ts";
import { run } from "../../hack/lib/run.ts";
import { COMMAND, type MeasuredFleet, REPLICAS } from "./measured-fleet.ts";

const SUITE = "bookworm";
const LIMIT_MS = 5 * 60_000;
const SWARM_PORT = 2377;
const IMAGE = "localhost/idle:1";
/** Docker's layers can't be on the hosts' stacked file system. */
const SETTINGS = '{ "data-root": "/var/lib/containerd/docker" }';
const PREPARE = `mkdir -p /etc/docker /tmp/root/bin
echo '${SETTINGS}' > /etc/docker/daemon.json
apt-get -qq --yes install docker.io busybox-static
for name in sh sleep; do cp /bin/busybox /tmp/root/bin/$name; done
tar --directory /tmp/root --create . | docker import - ${IMAGE}`;

/**
 * Boots the hosts of the lab, installs Debian's Docker on them, makes a swarm with default settings and deploys the
 * containers.
 */
export async function startSwarm(lab: Lab): Promise<MeasuredFleet> {
  await providePackages(lab);
  await Promise.all(lab.hosts.map(({ name }) => lab.boot(name)));
  for (const host of lab.hosts) {
    await usePackages(lab, host);
    await onHost(lab, host.name, PREPARE);
  }
  const { name: manager, address } = lab.coordinator;
  await onHost(lab, manager, `docker swarm init --advertise-addr ${address}`);
  await onHost(lab, manager, `docker node update --availability drain ${manager}`);
  const token = (await onHost(lab, manager, "docker swarm join-token --quiet worker")).trim();
  const workers = lab.hosts.filter(({ runsAgent }) => runsAgent);
  for (const { name } of workers)
    await onHost(lab, name, `docker swarm join --token ${token} ${address}:${SWARM_PORT}`);
  const create = ["docker", "service", "create", "--detach", "--quiet", "--no-resolve-image"];
  await lab.exec(manager, [...create, "--name", "idle", "--replicas", String(REPLICAS), IMAGE, ...COMMAND]);
  return {
    ...{ lab, namespace: "moby", unit: "docker.service" },
    isReady: async () => {
      const states = await onHost(lab, manager, "docker node ls --format '{{.Status}}'");
      return states.trim().split("\n").length === lab.hosts.length && /^(Ready\s*)+$/.test(states);
    },
  };
}

/** Downloads Docker and its dependencies that the hosts' image lacks, for installation by the hosts. */
async function providePackages(lab: Lab): Promise<void> {
  const image = await ensureHostImage(console.error);
  const packages = lab.path("packages");
  copyDependencies(image, packages);
  const dir = lab.path("apt");
  for (const part of ["lists/partial", "cache/archives/partial"])
    mkdirSync(join(dir, part), { recursive: true });
  writeFileSync(join(dir, "sources"), `deb ${await debianArchive()} ${SUITE} main\n`);
  const settings = [
    ...["Dir::Etc::SourceParts=/dev/null", `Dir::Etc::SourceList=${join(dir, "sources")}`],
    ...[`Dir::State::Lists=${join(dir, "lists")}`, `Dir::Cache=${join(dir, "cache")}`],
    ...[`Dir::State::Status=${join(image.root, "var/lib/dpkg/status")}`, "APT::Sandbox::User=root"],
  ].flatMap((setting) => ["-o", setting]);
  const install = ["install", "--yes", "--download-only", "--no-install-recommends", "docker.io"];
  for (const command of [["update"], install])
    await run("apt-get", ["-qq", ...settings, ...command], { timeoutMs: LIMIT_MS });
  const archives = join(dir, "cache/archives");
  for (const file of readdirSync(archives))
    if (file.endsWith(".deb") && !existsSync(join(packages, file)))
      renameSync(join(archives, file), join(packages, file));
  await writePackageIndex(packages);
}

async function onHost(lab: Lab, host: string, line: string): Promise<string> {
  return (await lab.exec(host, ["sh", "-ec", line], { timeoutMs: LIMIT_MS })).stdout;
}
