import { failure, type HostCheck, ok, warning } from "./finding.ts";

const CONTROLLERS = ["cpu", "memory", "pids"];
const SECCOMP = /^Seccomp:\s*\d/m;

/**
 * Checks namespaces, file systems and packet filters instead of kernel versions, because distributions backport
 * features.
 */
export const kernelCheck: HostCheck = {
  name: "kernel",
  run: async (host) => {
    const release = (await host.readText("/proc/sys/kernel/osrelease"))?.trim() ?? "unknown";
    const findings = [];
    for (const name of ["mnt", "net", "pid", "ipc", "uts"]) {
      if (!(await host.exists(`/proc/self/ns/${name}`)))
        findings.push(failure(`kernel ${release} has no ${name} namespaces`, "use a kernel that has them"));
    }
    const filesystems = (await host.readText("/proc/filesystems")) ?? "";
    if (!/\boverlay$/m.test(filesystems) && !(await host.run("modprobe", ["--dry-run", "overlay"])).ok)
      findings.push(failure(`kernel ${release} has no overlay filesystem`, "load the module overlay"));
    if (!SECCOMP.test((await host.readText("/proc/self/status")) ?? ""))
      findings.push(
        warning(`kernel ${release} has no seccomp`, "pods with a seccomp profile can't run here"),
      );
    const rules = await host.run("nft", ["list", "tables"]);
    if (!rules.ok)
      findings.push(
        failure(`nft list tables: ${rules.text}`, "install nftables, and load the module nf_tables"),
      );
    return findings.length > 0 ? findings : [ok(`kernel ${release}`)];
  },
};

export const cgroupCheck: HostCheck = {
  name: "cgroups",
  run: async (host) => {
    const unified = await host.readText("/sys/fs/cgroup/cgroup.controllers");
    const lacking =
      unified === undefined
        ? await lackingV1(host.exists)
        : CONTROLLERS.filter((name) => !unified.split(/\s+/).includes(name));
    const version = unified === undefined ? "v1" : "v2";
    const directory = unified === undefined ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    // The cgroup file system may be read-only, for example if the host is itself a container.
    if (lacking.length === 0 && !(await host.isWritable(directory)))
      return [
        failure(`${directory} can't be written to`, `mount -o remount,rw ${directory}, and run as root`),
      ];
    if (lacking.length === 0) return [ok(`cgroups ${version} with ${CONTROLLERS.join(", ")}`)];
    const message = `cgroups ${version} lack ${lacking.join(", ")}`;
    const options = lacking.includes("memory") ? " (cgroup_enable=memory on the kernel's command line)" : "";
    return [failure(message, `enable the controllers${options}; limits of pods have no effect without them`)];
  },
};

async function lackingV1(exists: (path: string) => Promise<boolean>): Promise<string[]> {
  const lacking = [];
  for (const name of CONTROLLERS) if (!(await exists(`/sys/fs/cgroup/${name}`))) lacking.push(name);
  return lacking;
}
