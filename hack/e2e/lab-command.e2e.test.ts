import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { missingForLab, testedKinds } from "../lab-hosts/host-kinds.ts";
import { LABS } from "../lab-hosts/lab-state.ts";
import { type RunResult, run } from "../lib/run.ts";
import { waitFor } from "../lib/wait-for.ts";
import { type ClaimedLab, claimLab } from "../system/claim-lab.ts";

const LIMIT_MS = 480_000;
const LIMIT = { timeout: LIMIT_MS };
const HACK_LAB = join(import.meta.dirname, "..", "lab");

for (const kind of testedKinds(process.env)) testCommands(kind);

function testCommands(kind: string): void {
  const skip = missingForLab(kind, process.env);
  describe(`the commands of hack/lab (${kind})`, { concurrency: false, skip }, () => {
    let claimed: ClaimedLab;
    let traces: readonly string[] = [];

    const lab = (...args: readonly string[]): Promise<RunResult> =>
      run(HACK_LAB, ["--name", claimed.name, ...args], { allowFailure: true, timeoutMs: LIMIT_MS });
    const done = async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await lab(...args);
      assert.equal(exitCode, 0, stderr);
      return stdout;
    };

    before(async () => {
      claimed = await claimLab();
      traces = await tracesOf(claimed.name);
    }, LIMIT);
    after(() => claimed?.release(), LIMIT);

    test("up boots a host with the packages installed by the scripts that Vagrant uses", LIMIT, async () => {
      const printed = await done("up", "1", "--kind", kind);
      assert.match(printed, /The fleet is ready/);
      assert.match(await done("exec", "h1", "forage", "get", "nodes"), /^h1 +Ready/m);
      const again = await lab("up", "1", "--kind", kind);
      assert.equal(again.exitCode, 1);
      assert.match(again.stderr, /exists/);
    });

    test("exec passes on the exit code, and logs prints the journals of the daemons", LIMIT, async () => {
      assert.equal((await lab("exec", "h1", "--", "sh", "-c", "exit 7")).exitCode, 7);
      assert.match(await done("logs", "h1", "--lines", "200"), /coordinator-started/);
      assert.match((await lab("exec", "h9", "true")).stderr, /there is no host h9/);
    });

    test("a host is powered off, booted, cut off and healed, and status shows it", LIMIT, async () => {
      await done("poweroff", "h1");
      assert.match(await done("status"), /^h1 .* off/m);
      await done("boot", "h1");
      await done("partition", "h1");
      assert.match(await done("status"), /^h1 .* up, cut off/m);
      await done("heal");
      assert.doesNotMatch(await done("status"), /cut off/);
    });

    test(
      "a network is slowed down where the kernel can, and refused with the reason elsewhere",
      LIMIT,
      async () => {
        const { exitCode, stderr } = await lab("slow", "h1", "--delay", "50", "--loss", "1");
        if (exitCode === 0) assert.match(await done("status"), /slow \(50 ms, 1% lost\)/);
        else assert.match(stderr, /can't be slowed down.*CONFIG_NET_SCH_NETEM/s);
        await done("heal");
      },
    );

    test("down leaves nothing on this machine", LIMIT, async () => {
      assert.notDeepEqual(await tracesOf(claimed.name), traces);
      await done("down");
      // The kernel frees loop devices and ends processes a moment later.
      let left: readonly string[] = [];
      await waitFor(
        async () => {
          left = await tracesOf(claimed.name);
          return left.join("\n") === traces.join("\n");
        },
        { what: "nothing is left", limitMs: 20_000, everyMs: 200, explain: () => left.join("\n") },
      );
      assert.match((await lab("status")).stderr, /there is no lab/);
    });
  });
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

/** Processes end while they are listed. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
