import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { STAND_IN_KIND } from "../lab-hosts/host-kinds.ts";
import { Lab } from "../lab-hosts/lab.ts";
import type { LabHost } from "../lab-hosts/lab-plan.ts";
import { labPaths } from "../lab-hosts/lab-state.ts";
import { run } from "../lib/run.ts";
import { LETTER } from "./stand-in-vagrant-plan.ts";

/**
 * A replacement of `vagrant` for machines without a provider. It supports the commands of the lab's driver, and uses
 * hosts of the kind nspawn as machines. Like a Vagrant box, they accept an ordinary user over SSH who may become root.
 * Other arguments are rejected.
 */

interface Plan {
  readonly lab: string;
  readonly hosts: readonly { readonly name: string; readonly address: string }[];
  readonly packages: string;
}

const READABLE = "--machine-readable";
const USER = "vagrant";
const ADD_USER = `useradd --create-home --password '*' --shell /bin/bash ${USER}
echo '${USER} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/${USER}
install -d -m 700 -o ${USER} /home/${USER}/.ssh
cat > /home/${USER}/.ssh/authorized_keys
ssh-keygen -A`;
const SSHD = ["/usr/sbin/sshd", "-i", "-o", "UsePAM=no", "-o", "UseDNS=no"];

async function main(args: readonly string[]): Promise<string> {
  const path = process.env.FORAGE_LAB_MACHINES ?? "";
  if (args.join(" ") === `status ${READABLE}` && path === "") return "";
  const plan = JSON.parse(readFileSync(path, "utf8")) as Plan;
  const planned = plan.hosts.find(({ name }) => name === args[1])?.name;
  switch (args.map((arg) => (arg === planned ? "NAME" : arg)).join(" ")) {
    case `status NAME ${READABLE}`:
      return `1,${planned},state,${await stateOf(plan, planned)}\n`;
    case `up NAME --no-provision ${READABLE}`:
      return up(plan, planned ?? "");
    case "ssh-config NAME":
      return sshConfig(Lab.open(nameOf(plan)), planned ?? "");
    case `halt NAME ${READABLE}`:
      await Lab.open(nameOf(plan)).shutDown(planned ?? "");
      return "";
    case `halt NAME --force ${READABLE}`:
      await Lab.open(nameOf(plan)).powerOff(planned ?? "");
      return "";
    case `rsync NAME ${READABLE}`:
      copyPackages(plan);
      return "";
    case `destroy --force ${READABLE}`:
      await Lab.remove(nameOf(plan));
      return "";
    default:
      throw new Error(`the stand-in has no command for: ${args.join(" ")}`);
  }
}

function nameOf({ lab }: Plan): string {
  return `${lab}${LETTER}`;
}

async function stateOf(plan: Plan, name: string | undefined): Promise<string> {
  const lab = Lab.open(nameOf(plan));
  return (await lab.running()).some((host) => host.name === name) ? "running" : "poweroff";
}

async function up(plan: Plan, name: string): Promise<string> {
  const labName = nameOf(plan);
  const hosts = plan.hosts.map((host, index): LabHost => {
    return { ...host, runsCoordinator: index === 0, runsAgent: true, labels: {} };
  });
  const isThere = existsSync(labPaths(labName).state);
  const lab = isThere ? Lab.open(labName) : await Lab.create(labName, STAND_IN_KIND, hosts);
  const key = lab.path("key");
  if (!existsSync(key)) await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
  copyPackages(plan);
  await lab.boot(name);
  const { exitCode } = await lab.exec(name, ["id", USER], { allowFailure: true });
  if (exitCode !== 0)
    await lab.exec(name, ["sh", "-ec", ADD_USER], { input: readFileSync(`${key}.pub`, "utf8") });
  await lab.exec(name, ["mkdir", "-p", "/run/sshd"]);
  return `1,${name},ui,info,${name} is up\n`;
}

/** Copies the packages for the machines, as rsync does. */
function copyPackages(plan: Plan): void {
  const { packages } = labPaths(nameOf(plan));
  mkdirSync(packages, { recursive: true });
  cpSync(plan.packages, packages, { recursive: true });
}

function sshConfig(lab: Lab, name: string): string {
  const host = lab.host(name);
  return `Host ${name}
  HostName ${host.address}
  User ${USER}
  IdentityFile ${lab.path("key")}
  IdentitiesOnly yes
  PasswordAuthentication no
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  ProxyCommand ${lab.driver.terminalCommand(host, SSHD).join(" ")}
`;
}

process.stdout.write(await main(process.argv.slice(2)));
