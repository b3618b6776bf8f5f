import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { listMounts } from "../../lib/mounts.ts";
import { run } from "../../lib/run.ts";
import { waitFor } from "../../lib/wait-for.ts";
import { type PodLab, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 300_000 };
const path = join(import.meta.dirname, "../../../examples/everything.yaml");
const APPLY = "apply -f examples/everything.yaml";

describe("examples/everything.yaml", { concurrency: false }, () => {
  let lab: PodLab;
  const uids: string[] = [];
  const text = readFileSync(path, "utf8");
  const commands = documented(text);
  const applied = commands.findIndex(({ line }) => line === APPLY);
  before(async () => {
    lab = await startPodLab({
      agent: () => ({
        runtimeClasses: { plain: "io.containerd.runc.v2" },
        devices: { "example.com/null": ["/dev/null", "/dev/null"] },
      }),
    });
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  async function forage({ line, input }: Command): Promise<void> {
    const { exitCode, stderr, stdout } = await lab.system.forage(line.split(" "), input);
    assert.equal(exitCode, 0, `${line}: ${stderr}${stdout}`);
  }

  test("deploys unchanged after the commands in its comments", LIMIT, async () => {
    assert.ok(applied > 0);
    for (const command of commands.slice(0, applied)) await forage(command);
    const manifest = text.replaceAll("localhost/forage/hello:1", lab.host.image).replaceAll("#~ ", "");
    await forage({ line: "apply -f -", input: manifest });
    const list = ["get", "pods", "-n", "everything"];
    const pods = await lab.system.ask<{ uid: string; status?: { ready?: boolean } }[]>(list);
    uids.push(...pods.map(({ uid }) => uid));
    assert.deepEqual(
      pods.map(({ status }) => status?.ready),
      [true, true, true],
    );
    const endpoints = await lab.system.ask<{ address: string; port: number }[]>([
      ...["get", "endpoints", "-n", "everything"],
    ]);
    assert.equal(endpoints.length, 2);
    for (const { address, port } of endpoints) {
      assert.match(await (await fetch(`http://${address}:${port}/index.html`)).text(), /^hello\s*web-/);
    }
  });

  test(
    "is removed completely: no container, mount, loop device, namespace or file remains",
    LIMIT,
    async () => {
      for (const command of commands.slice(applied + 1)) await forage(command);
      assert.equal((await lab.host.nerdctl(["ps", "-aq"])).stdout, "");
      const volumes = join(lab.host.dir, "agent", "volumes");
      let found: string[] = [];
      const isClean = async () => {
        found = await left(lab.host.dir);
        return found.length === 0;
      };
      await waitFor(isClean, { what: "nothing is left", limitMs: 60_000, explain: () => found.join("\n") });
      const files = await run("find", [volumes, "-type", "f", "-size", "+0"], { allowFailure: true });
      assert.equal(files.stdout, "", "no data of volumes or claims");
      const named = await run("find", [join(lab.host.dir, "agent"), ...uids.flatMap(pathWith)]);
      assert.equal(named.stdout, "", "nothing named after the pods");
      await lab.system.agent.stop();
      const { leases } = await lab.host.networkRemains();
      assert.deepEqual(leases, []);
    },
  );

  /** Returns the remaining mounts of pods and claims, and the loop devices with images in the host's directory. */
  async function left(dir: string): Promise<string[]> {
    const { stdout } = await run("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"]);
    const loops = stdout.split("\n").filter((file) => file.startsWith(dir));
    // The tmpfs for secrets belongs to the agent. It remains, but is empty.
    const own = `${dir}/agent/volumes/memory`;
    const mounts = listMounts().filter((it) => it.startsWith(`${dir}/agent/`) && it !== own);
    return [...loops, ...mounts];
  }
});

interface Command {
  readonly line: string;
  readonly input?: string;
}

/** Returns the commands in the comments, in their order. */
function documented(text: string): Command[] {
  return [...text.matchAll(/^# +(?:echo (\S+) \| )?forage (.*)$/gm)].map(([, input, line = ""]) => {
    return { line, ...(input !== undefined && { input: `${input}\n` }) };
  });
}

function pathWith(uid: string, index: number): string[] {
  return [...(index === 0 ? [] : ["-o"]), "-path", `*${uid}*`];
}
