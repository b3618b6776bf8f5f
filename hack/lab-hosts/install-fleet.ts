import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Progress } from "../instance/progress.ts";
import { goArchitecture } from "../lib/architecture.ts";
import { buildPackages } from "../packaging/build-packages.ts";
import { PACKAGES_DIR } from "./host-driver.ts";
import { copyDependencies, ensureHostImage } from "./host-image.ts";
import type { Lab } from "./lab.ts";
import type { LabHost } from "./lab-plan.ts";
import { writePackageIndex } from "./package-repository.ts";

const PROVISION = join(import.meta.dirname, "provision");
const SCRIPTS_DIR = "/root/provision";
const INSTALL_LIMIT_MS = 10 * 60_000;

/** Builds the packages of the checkout into the lab's repository. The default version is the checkout's. */
export async function providePackages(
  lab: Lab,
  checkout: string,
  version: string | undefined,
  progress: Progress,
): Promise<void> {
  const dir = lab.path("packages");
  const image = await ensureHostImage(() => {});
  copyDependencies(image, dir);
  removePackages(dir);
  // The packages are installed once from the same machine, so a small size is worth little.
  const flags = {
    architectures: [goArchitecture()],
    formats: ["deb"],
    outDir: dir,
    version,
    compressionLevel: 1,
  } as const;
  await buildPackages(checkout, flags, progress);
  await writePackageIndex(dir);
  await lab.syncPackages();
}

/** Copies Forage's packages to a directory beside the repository. */
export function keepPackages(lab: Lab): void {
  copyPackages(lab.path("packages"), lab.path("kept-packages"));
}

/** Replaces the repository's packages with the copied ones. */
export async function offerKeptPackages(lab: Lab): Promise<void> {
  await offerPackages(lab, lab.path("kept-packages"));
}

/** Replaces the repository's packages with those of the directory and their Debian dependencies. */
export async function offerPackages(lab: Lab, from: string): Promise<void> {
  const dir = lab.path("packages");
  copyDependencies(await ensureHostImage(() => {}), dir);
  removePackages(dir);
  copyPackages(from, dir);
  await writePackageIndex(dir);
  await lab.syncPackages();
}

/** Removes Forage's packages. Another version must not be in the index, so an upgrade has a single candidate. */
function removePackages(dir: string): void {
  for (const file of packagesIn(dir)) rmSync(join(dir, file));
}

function copyPackages(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const file of packagesIn(from)) copyFileSync(join(from, file), join(to, file));
}

function packagesIn(dir: string): readonly string[] {
  return readdirSync(dir).filter((file) => /^forage[-_]/.test(file));
}

/** Makes the host install from the lab's repository, as from an operator's own. */
export async function usePackages(lab: Lab, { name }: LabHost): Promise<void> {
  for (const script of readdirSync(PROVISION))
    await lab.copy(name, join(PROVISION, script), join(SCRIPTS_DIR, script));
  await provision(lab, name, "use-packages.sh", [PACKAGES_DIR]);
}

/** Installs the coordinator and every agent as an operator does. Returns when all nodes are Ready. */
export async function installFleet(lab: Lab, { step }: Progress): Promise<void> {
  const { coordinator, hosts } = lab;
  await step(`coordinator on ${coordinator.name}`, async () => {
    await usePackages(lab, coordinator);
    await provision(lab, coordinator.name, "install-coordinator.sh", []);
  });
  const agents = hosts.filter(({ runsAgent }) => runsAgent);
  await step(`agents on ${agents.map(({ name }) => name).join(", ")}`, () =>
    Promise.all(agents.map((host) => installAgent(lab, host))),
  );
}

/** Installs the agent and joins the fleet with the command that the coordinator's host has printed. */
export async function installAgent(lab: Lab, host: LabHost): Promise<void> {
  await usePackages(lab, host);
  await provision(lab, host.name, "install-agent.sh", ["sh", "-c", await joinLine(lab, host)]);
}

/** Returns the shell command from `forage node add` that joins the host. */
export async function joinLine(lab: Lab, { name, labels }: LabHost): Promise<string> {
  const flags = Object.entries(labels).flatMap(([key, value]) => ["--label", `${key}=${value}`]);
  const address = `${lab.coordinator.address}:7600`;
  const { stdout } = await lab.forage(["node", "add", name, "--coordinator", address, ...flags]);
  return stdout.trim();
}

async function provision(lab: Lab, host: string, script: string, args: readonly string[]): Promise<void> {
  await lab.exec(host, ["sh", join(SCRIPTS_DIR, script), ...args], { timeoutMs: INSTALL_LIMIT_MS });
}
