import { join } from "node:path";
import { failure, type HostCheck, ok, warning } from "./finding.ts";

const PLUGINS = ["bridge", "host-local", "loopback"];
const OLDEST_NERDCTL = 2;
/** Programs without which pods or services don't work, and their Debian packages. */
const NEEDED = [
  ["runc", "runc"],
  ["nft", "nftables"],
  ["conntrack", "conntrack"],
  ["ip", "iproute2"],
  ["mount", "mount"],
  ["mkfs.ext4", "e2fsprogs"],
] as const;
/** Programs that only some features need. */
const PROGRAMS = [
  ["busybox", "busybox", "addresses of load balancers are not checked for other users"],
  ["ndisc6", "ndisc6", "IPv6 addresses of load balancers are not checked for other users"],
  ["ndptool", "libndp-tools", "IPv6 addresses of load balancers are not announced"],
  ["mount.nfs", "nfs-common", "NFS volumes can't be mounted"],
  ["zstd", "zstd", "workspaces can't be stored"],
  ["git", "git", "workspaces can't be cloned"],
  ["flock", "util-linux", "containers with open standard input can't be started"],
  ["prlimit", "util-linux", "commands in containers keep running when their connection breaks"],
  ["perl", "perl-base", "attached sessions pass no input to terminals"],
] as const;
const DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

export const programsCheck: HostCheck = {
  name: "programs",
  run: async (host) => {
    const isThere = async (name: string): Promise<boolean> => {
      for (const directory of DIRECTORIES) if (await host.exists(join(directory, name))) return true;
      return false;
    };
    const findings = [];
    for (const [name, debian] of NEEDED)
      if (!(await isThere(name))) findings.push(failure(`${name} is missing`, `apt install ${debian}`));
    for (const [name, debian, effect] of PROGRAMS)
      if (!(await isThere(name)))
        findings.push(warning(`${name} is missing: ${effect}`, `apt install ${debian}`));
    return findings.length > 0 ? findings : [ok("all programs are installed")];
  },
};

export const containerdCheck: HostCheck = {
  name: "containerd",
  run: async (host, { nerdctl, containerd: { address, namespace } }) => {
    const own = await host.run(nerdctl, ["--version"]);
    const version = /(\d+)\.\d+\.\d+/.exec(own.text);
    if (!own.ok || version === null)
      return [
        failure(`${nerdctl}: ${own.text}`, "install the package forage-agent, or set nerdctl in agent.yaml"),
      ];
    if (Number(version[1]) < OLDEST_NERDCTL)
      return [failure(`nerdctl is ${version[0]}`, `install ${OLDEST_NERDCTL}.0 or newer`)];
    const args = ["--address", address, "--namespace", namespace, "ps", "--quiet"];
    const answer = await host.run(nerdctl, args);
    if (answer.ok) return [ok(`containerd answers on ${address}; nerdctl ${version[0]}`)];
    return [
      failure(
        `containerd does not answer on ${address}: ${answer.text}`,
        "systemctl enable --now containerd, or set containerd.address in agent.yaml",
      ),
    ];
  },
};

export const cniCheck: HostCheck = {
  name: "cni",
  run: async (host, { cniBinDir }) => {
    const missing = [];
    for (const name of PLUGINS) if (!(await host.exists(join(cniBinDir, name)))) missing.push(name);
    if (missing.length === 0) return [ok(`plugins in ${cniBinDir}`)];
    const remedy = "apt install containernetworking-plugins, or set cniBinDir in agent.yaml";
    return [failure(`${cniBinDir} lacks ${missing.join(", ")}`, remedy)];
  },
};
