import { spawnSync } from "node:child_process";
import { EXAMPLE_IMAGE, exampleArchive } from "../instance/example.ts";
import { withLock } from "../instance/lock.ts";
import type { Progress } from "../instance/progress.ts";
import { driverFor } from "./host-kinds.ts";
import { installFleet, providePackages } from "./install-fleet.ts";
import { Lab } from "./lab.ts";
import type { LabCommand, LabFlags } from "./lab-flags.ts";
import { type LabHost, planHosts } from "./lab-plan.ts";
import { labPaths } from "./lab-state.ts";
import { loadImage } from "./load-image.ts";

export interface LabCommandOptions extends LabFlags {
  readonly checkout: string;
  readonly progress: Progress;
  readonly print: (text: string) => void;
  readonly signal: AbortSignal;
}

const UNITS = ["forage-coordinator", "forage-agent", "forage-logs", "containerd"];

/** Runs one command of `hack/lab` and returns its exit code. */
export async function runLabCommand(options: LabCommandOptions): Promise<number> {
  const { command, name } = options;
  switch (command.type) {
    case "exec":
      return execOnHost(Lab.open(name), command.host, command.argv);
    case "status":
      await printStatus(Lab.open(name), options.print);
      return 0;
    case "logs":
      await printLogs(Lab.open(name), command.host, command.lines, options.print);
      return 0;
    default:
      await withLock(labPaths(name).lock, () => change(command, options));
      return 0;
  }
}

type Change = Exclude<LabCommand, { readonly type: "exec" | "status" | "logs" }>;

async function change(command: Change, options: LabCommandOptions): Promise<void> {
  const { name, progress } = options;
  const step = (title: string, work: () => Promise<void>): Promise<void> => progress.step(title, work);
  switch (command.type) {
    case "up":
      return bringLabUp(command, options);
    case "down":
      return step(`lab ${name} removed`, () => Lab.remove(name));
    case "boot":
      return step(`${command.host} booted`, () => Lab.open(name).boot(command.host, options.signal));
    case "reboot":
      return step(`${command.host} rebooted`, () => Lab.open(name).reboot(command.host));
    case "poweroff":
      return step(`${command.host} is off`, () => Lab.open(name).powerOff(command.host));
    case "partition":
      return step(`${command.hosts.join(", ")} cut off`, () => Lab.open(name).partition(command.hosts));
    case "slow":
      return step(`${command.host} is slow`, () => Lab.open(name).slow(command.host, command.link));
    case "heal":
      return step("network healed", () => Lab.open(name).heal());
  }
}

async function bringLabUp(
  { count, coordinatorOwnHost, kind }: Extract<LabCommand, { readonly type: "up" }>,
  { name, checkout, progress, print, signal }: LabCommandOptions,
): Promise<void> {
  const { step } = progress;
  const driver = driverFor(kind, name);
  await step("image of the hosts", (report) => driver.prepare(report));
  const { gateway } = driver;
  const lab = await Lab.create(name, kind, planHosts({ count, coordinatorOwnHost, gateway }));
  await providePackages(lab, checkout, undefined, progress);
  await step(`${lab.hosts.length} hosts booted`, () =>
    Promise.all(lab.hosts.map((host) => lab.boot(host.name, signal))),
  );
  await installFleet(lab, progress);
  await step(`image ${EXAMPLE_IMAGE} on all hosts`, async () => {
    const agents = lab.hosts.filter(({ runsAgent }) => runsAgent);
    await loadImage(
      lab,
      agents.map((host) => host.name),
      await exampleArchive(),
    );
  });
  const at = lab.coordinator.name;
  const option = name === "lab" ? "" : ` --name ${name}`;
  print(`
The fleet is ready. The CLI of ${at} is set up for it:

  sudo hack/lab${option} exec ${at} forage get nodes
  sudo hack/lab${option} exec ${at} forage apply --namespace default --file - < examples/hello.yaml

Remove it all: sudo hack/lab down${option}
`);
}

function execOnHost(lab: Lab, host: string, argv: readonly string[]): number {
  const [file = "", ...args] = lab.driver.terminalCommand(lab.host(host), argv);
  const { status, error } = spawnSync(file, args, { stdio: "inherit" });
  if (error !== undefined) throw error;
  return status ?? 1;
}

async function printStatus(lab: Lab, print: (text: string) => void): Promise<void> {
  const { hosts, cut, slow, kind } = lab.state;
  const running = (await lab.running()).map((host) => host.name);
  const line = (host: LabHost): string => {
    const link = slow[host.name];
    const notes = [
      running.includes(host.name) ? "up" : "off",
      ...(cut.includes(host.name) ? ["cut off"] : []),
      ...(link === undefined ? [] : [`slow (${link.delayMs} ms, ${link.lossPercent}% lost)`]),
      ...(host.runsCoordinator ? ["coordinator"] : []),
    ];
    return `${host.name.padEnd(12)} ${host.address.padEnd(12)} ${notes.join(", ")}\n`;
  };
  print(`lab ${lab.name}, hosts of kind ${kind}\n\n${hosts.map(line).join("")}\n`);
  if (!running.includes(lab.coordinator.name)) return;
  const { stdout, stderr } = await lab.forage(["get", "nodes"], { allowFailure: true });
  print(stdout || stderr);
}

async function printLogs(
  lab: Lab,
  only: string | undefined,
  lines: number,
  print: (text: string) => void,
): Promise<void> {
  const hosts = only === undefined ? lab.hosts : [lab.host(only)];
  for (const host of hosts) {
    print(`==> ${host.name}\n`);
    if (!(await lab.driver.isRunning(host))) {
      print(`${lab.driver.consoleOf(host).split("\n").slice(-lines).join("\n")}\n`);
      continue;
    }
    const units = UNITS.map((unit) => `--unit=${unit}`);
    const { stdout } = await lab.exec(host.name, [
      ...["journalctl", "--no-pager", "--output=short-iso", `--lines=${lines}`],
      ...units,
    ]);
    print(stdout);
  }
}
