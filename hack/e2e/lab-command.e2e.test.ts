import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { driverFor, limitFor, missingForLab, testedKinds } from "../lab-hosts/host-kinds.ts";
import { BRIDGE } from "../lab-hosts/lab-network.ts";
import { LABS } from "../lab-hosts/lab-state.ts";
import { type RunResult, run } from "../lib/run.ts";
import { waitFor } from "../lib/wait-for.ts";
import { type ClaimedLab, claimLab } from "../system/claim-lab.ts";

/**
 * Prints the time after which another machine refuses a connection. A delayed network takes at least the delay on any
 * machine.
 */
const refusedSeconds = (gateway: string): string =>
  `curl --silent --write-out '%{time_total}' http://${gateway}:9/ || true`;
const HACK_LAB = join(import.meta.dirname, "..", "lab");

for (const kind of testedKinds(process.env)) testCommands(kind);

function testCommands(kind: string): void {
  const skip = missingForLab(kind, process.env);
  const limit = limitFor(kind);
  describe(`the commands of hack/lab (${kind})`, { concurrency: false, skip }, () => {
    let claimed: ClaimedLab;
    let traces: readonly string[] = [];

    const lab = (...args: readonly string[]): Promise<RunResult> =>
      run(HACK_LAB, ["--name", claimed.name, ...args], { allowFailure: true, timeoutMs: limit.timeout });
    const done = async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await lab(...args);
      assert.equal(exitCode, 0, stderr);
      return stdout;
    };

    before(async () => {
      claimed = await claimLab();
      traces = await tracesOf(claimed.name);
    }, limit);
    after(() => claimed?.release(), limit);

    test("up boots a host with packages installed by the scripts that Vagrant uses", limit, async () => {
      const printed = await done("up", "1", "--kind", kind);
      assert.match(printed, /The fleet is ready/);
      assert.match(await done("exec", "h1", "forage", "get", "nodes"), /^h1 +Ready/m);
      const again = await lab("up", "1", "--kind", kind);
      assert.equal(again.exitCode, 1);
      assert.match(again.stderr, /exists/);
    });

    test("exec returns the exit code, and logs prints the journals of the daemons", limit, async () => {
      assert.equal((await lab("exec", "h1", "--", "sh", "-c", "exit 7")).exitCode, 7);
      assert.match(await done("logs", "h1", "--lines", "200"), /coordinator-started/);
      assert.match((await lab("exec", "h9", "true")).stderr, /there is no host h9/);
    });

    test("a host is powered off, booted, cut off and healed, and status reports it", limit, async () => {
      const gateway = await gatewayLink(kind, claimed.name);
      await done("poweroff", "h1");
      assert.match(await done("status"), /^h1 .* off/m);
      // Other hosts would continue to send to the former gateway.
      assert.equal(await gatewayLink(kind, claimed.name), gateway);
      await done("boot", "h1");
      await done("partition", "h1");
      assert.match(await done("status"), /^h1 .* up, cut off/m);
      await done("heal");
      assert.doesNotMatch(await done("status"), /cut off/);
    });

    test(
      "a network is slowed down if the kernel can, and otherwise refused with the reason",
      limit,
      async () => {
        const { exitCode, stderr } = await lab("slow", "h1", "--delay", "200", "--loss", "1");
        if (exitCode === 0) {
          const { gateway } = driverFor(kind, claimed.name);
          assert.match(await done("status"), /slow \(200 ms, 1% lost\)/);
          assert.ok(Number(await done("exec", "h1", "--", "sh", "-c", refusedSeconds(gateway))) >= 0.2);
        } else assert.match(stderr, /can't be slowed down.*CONFIG_NET_SCH_NETEM/s);
        await done("heal");
      },
    );

    test("down leaves nothing on this machine", limit, async () => {
      assert.notDeepEqual(await tracesOf(claimed.name), traces);
      await done("down");
      // The kernel frees loop devices and ends processes a moment later.
      let left: readonly string[] = [];
      await waitFor(
        async () => {
          left = await tracesOf(claimed.name);
          return left.join("\n") === traces.join("\n");
        },
        { what: "nothing is left", limitMs: 90_000, everyMs: 200, explain: () => left.join("\n") },
      );
      assert.match((await lab("status")).stderr, /there is no lab/);
    });
  });
}

/**
 * Returns the link-layer address by which hosts reach the gateway; `undefined` if a provider of virtual machines
 * manages it.
 */
async function gatewayLink(kind: string, name: string): Promise<string | undefined> {
  const [file = "", ...args] = driverFor(kind, name).besideCommand(["ip", "link", "show", BRIDGE]);
  const { stdout } = await run(file, args, { allowFailure: kind === "vagrant" });
  return /link\/ether (\S+)/.exec(stdout)?.[1];
}

/** Returns everything on this machine that carries the lab's name: mounts, loop devices, processes, networks, groups and files. */
async function tracesOf(name: string): Promise<readonly string[]> {
  const among = (text: string): string[] => text.split("\n").filter((line) => names(line, name));
  const processes = readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && entry !== String(process.pid))
    .map((pid) => [read(`/proc/${pid}/cmdline`), read(`/proc/${pid}/cgroup`)] as const)
    // A process that has ended stays in the list without a command line for a moment.
    .flatMap(([command, groups]) => (command === "" ? [] : `${command} ${groups}`));
  const found = [
    ...among(read("/proc/self/mountinfo")),
    ...among((await run("losetup", ["--all", "--noheadings", "--output", "BACK-FILE"])).stdout),
    ...among((await run("ip", ["netns", "list"])).stdout),
    ...among((await run("find", ["/sys/fs/cgroup", "-type", "d", "-name", `*${name}*`])).stdout),
    ...processes.filter((line) => names(line, `${LABS}/${name}`) || names(line, `forage-lab-${name}`)),
    ...(existsSync(LABS) ? readdirSync(LABS).filter((file) => names(file, name)) : []),
  ];
  return found.sort();
}

function names(text: string, name: string): boolean {
  return new RegExp(`(?<![a-z0-9])${name}(?![a-z0-9])`).test(text);
}

/** Returns a file's content, or an empty text if the process has ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
