import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { argv, env, execPath, exit, getuid, pid } from "node:process";

const INSIDE = "FORAGE_TEST_NETWORK";
const PREFIX = "fgt-";
const TOOLS = ["/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/lib/cni/bridge"];

/** An address and a default route of each family, as on a host. The network contains nothing else. */
const UPLINK = [
  "link set lo up",
  "link add host0 type veth peer name nothing0",
  "link set nothing0 up",
  "link set host0 up",
  "address add 203.0.113.1/24 dev host0",
  "route add default via 203.0.113.254",
];
const UPLINK6 = ["address add fd0f::1/64 dev host0 nodad", "route add default via fd0f::fe dev host0"];

/** Returns the reason why tests of real networking can't run on this machine; `undefined` if they can. */
export function whyNoOwnNetwork(): string | undefined {
  if (getuid?.() !== 0) return "needs root";
  const missing = TOOLS.find((path) => !existsSync(path));
  return missing === undefined ? undefined : `needs ${missing}`;
}

/**
 * Runs this program again with the same arguments in a separate network that is removed at its end, and exits with its
 * status. Returns only in the new process. The machine's own interfaces, rules and sysctls can't be changed there.
 */
export function enterOwnNetwork(): void {
  if (env[INSIDE] !== undefined) return;
  removeNetworksOfTheDead();
  const name = `${PREFIX}${pid}`;
  must("ip", ["netns", "add", name]);
  let status: number | null = 1;
  try {
    const lines = [...UPLINK, ...(existsSync("/proc/net/if_inet6") ? UPLINK6 : [])];
    must("ip", ["-n", name, "-batch", "-"], lines.join("\n"));
    const inside = { ...env, [INSIDE]: name };
    const program = [execPath, ...process.execArgv, ...argv.slice(1)];
    // Only the network is entered: `ip netns exec` would also hide namespaces that are made inside. If the runner ends
    // this process after a time-out, the program inside must end as well.
    status = spawnSync(
      "setpriv",
      ["--pdeathsig", "KILL", "--", "nsenter", `--net=/run/netns/${name}`, "--", ...program],
      { env: inside, stdio: "inherit" },
    ).status;
  } finally {
    must("ip", ["netns", "del", name]);
  }
  exit(status ?? 1);
}

/** Returns the reason why tests that need IPv6 can't run; `undefined` if they can. */
export function whyNoOwnIpv6(): string | undefined {
  return whyNoOwnNetwork() ?? (existsSync("/proc/net/if_inet6") ? undefined : "needs IPv6");
}

/** Reports whether an object with this process id in its name was left by a killed test. */
export function isOfTheDead(pidText: string, radix: number): boolean {
  return !existsSync(`/proc/${Number.parseInt(pidText, radix)}`);
}

function removeNetworksOfTheDead(): void {
  const names = existsSync("/run/netns") ? readdirSync("/run/netns") : [];
  for (const name of names.filter((it) => it.startsWith(PREFIX))) {
    // Files that start at the same time find the same remains. The slower one fails to remove them, without
    // consequences.
    if (isOfTheDead(name.slice(PREFIX.length), 10)) spawnSync("ip", ["netns", "del", name]);
  }
}

function must(file: string, args: readonly string[], input = ""): void {
  const { status, stderr } = spawnSync(file, args, { encoding: "utf8", input });
  if (status !== 0) throw new Error(`${file} ${args.join(" ")}: ${stderr}`);
}
