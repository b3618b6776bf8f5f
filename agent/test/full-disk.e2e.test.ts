import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Agent } from "../src/agent.ts";
import { HostOfFakes } from "./host-of-fakes.ts";
import { enterOwnMounts, whyNoOwnMounts } from "./own-mounts.ts";
import { until } from "./until.ts";

const skip = whyNoOwnMounts() ?? false;
const parent = skip === false ? enterOwnMounts() : "";
const MIB = 1024 * 1024;
const options = { skip, timeout: 120_000 };

test(
  "after a reboot with a full disk, the agent can restart all pods because of the reserve",
  options,
  async (t) => {
    const { host, start, fill } = await aSmallDisk(t);
    await host.begin();
    const first = await start({ diskReserveBytes: 4 * MIB });
    await until("the reserve is taken", () => fileBytes(join(host.dataDir, "disk-reserve")) === 4 * MIB);
    await first.agent.close();
    fill();
    await host.reboot();

    const { agent, parts } = await start({ diskReserveBytes: 4 * MIB });

    await until("all pods run again", () => running(host).length === 3);
    assert.equal(readFileSync(join(host.dataDir, "boot-id"), "utf8").split(" ")[0], host.bootId);
    assert.equal(parts.damageReports.summary(), undefined);
    assert.deepEqual(
      agent.problems().filter((problem) => /written/.test(problem)),
      [],
    );
  },
);

test(
  "without any space after a reboot, the agent starts, reports the full disk, and recovers once there is space",
  options,
  async (t) => {
    const { host, start, fill, free } = await aSmallDisk(t);
    await host.begin();
    fill();
    await host.reboot();

    const { agent } = await start();
    await until("the full disk is reported", () =>
      agent.problems().some((problem) => /^boot: .*(ENOSPC|no space)/i.test(problem)),
    );
    await agent.close();
    // A second agent in the same boot finds the same full disk.
    const second = await start();
    assert.notEqual(bootIdOf(host), host.bootId);

    free();
    await until("all pods run again", () => running(host).length === 3);
    await until("the boot id is written", () => bootIdOf(host) === host.bootId);
    await until("no write problem is left", () =>
      second.agent.problems().every((problem) => !/^(boot|states)/.test(problem)),
    );
  },
);

test(
  "an agent that restarts while the disk is full keeps containers that were started after the reboot",
  options,
  async (t) => {
    const { host, start, fill, free } = await aSmallDisk(t);
    await host.begin();
    await host.reboot();
    // Restores the states of the last boot on disk, as if none of this boot had been written.
    const copy = join(parent, "states");
    execFileSync("cp", ["-a", join(host.dataDir, "journal"), copy]);
    const bootId = readFileSync(join(host.dataDir, "boot-id"));
    const first = await start();
    await until("all pods run again", () => running(host).length === 3);
    await first.agent.close();
    rmSync(join(host.dataDir, "journal"), { recursive: true });
    execFileSync("mv", [copy, join(host.dataDir, "journal")]);
    writeFileSync(join(host.dataDir, "boot-id"), bootId);
    fill();
    const before = running(host);

    const second = await start();
    await second.agent.ready;
    free();
    await until("the boot id is written", () => bootIdOf(host) === host.bootId);
    await until("all pods are ready", () => second.agent.pods().every(({ phase }) => phase === "RUNNING"));

    assert.deepEqual(running(host), before);
  },
);

test("with a full disk and a lost key, the reserve makes room for a new key", options, async (t) => {
  const { host, start, fill } = await aSmallDisk(t);
  await host.begin();
  const first = await start({ diskReserveBytes: 4 * MIB });
  await until("the reserve is taken", () => fileBytes(join(host.dataDir, "disk-reserve")) === 4 * MIB);
  await first.agent.close();
  rmSync(join(host.dataDir, "journal.key"));
  fill();
  const before = running(host);

  const { agent } = await start({ diskReserveBytes: 4 * MIB });
  await agent.ready;

  assert.equal(fileBytes(join(host.dataDir, "journal.key")), 65);
  assert.deepEqual(running(host), before);
});

test(
  "with a full disk, a lost key and no reserve, the agent starts, reports that, and does not touch containers",
  options,
  async (t) => {
    const { host, start, fill, free } = await aSmallDisk(t);
    await host.begin();
    rmSync(join(host.dataDir, "journal.key"));
    fill();
    const before = running(host);

    const { agent, parts } = await start();
    await agent.ready;

    assert.match(
      parts.damageReports.summary() ?? "",
      /journal\.key is damaged \(a new key can't be written: ENOSPC/,
    );
    assert.deepEqual(running(host), before);
    await agent.close();

    free();
    const second = await start();
    await second.agent.ready;
    assert.equal(fileBytes(join(host.dataDir, "journal.key")), 65);
    assert.deepEqual(running(host), before);
  },
);

test(
  "with no byte left, a killed container waits with the full disk as its reason, and runs again once there is room",
  options,
  async (t) => {
    const { host, start, fill, free } = await aSmallDisk(t);
    await host.begin();
    const { agent } = await start();
    await agent.ready;
    fill();
    const [first] = running(host);
    assert.ok(first);

    host.runtime.exit(first.id, 137);
    await until("the reason is given", () => {
      fill();
      return agent
        .pods()
        .some(({ message }) => /no log can be written to .*: the disk is full$/.test(message));
    });
    await until("the unwritten state is reported", () => {
      fill();
      return agent.problems().some((problem) => /^states: .*(ENOSPC|no space)/i.test(problem));
    });

    free();
    await until("it runs again", () => running(host).length === 3);
    await until("no write problem is left", () =>
      agent.problems().every((problem) => !/^(boot|states)/.test(problem)),
    );
  },
);

/** Returns a host whose data directory is a tmpfs of 24 MiB. */
async function aSmallDisk(t: TestContext) {
  const dataDir = join(parent, "data");
  mkdirSync(dataDir, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m,mode=0700", "none", dataDir]);
  const agents: Agent[] = [];
  t.after(async () => {
    for (const agent of agents) await agent.close();
    execFileSync("umount", ["-l", dataDir]);
  });
  const filler = join(dataDir, "filler");
  const fill = (): void => {
    const { bfree, bsize } = statfsSync(dataDir);
    try {
      appendFileSync(filler, Buffer.alloc(bfree * bsize));
    } catch (error) {
      // A running agent used some of the space.
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  };
  const host = await HostOfFakes.make(t, { dataDir });
  const start = async (startOptions = {}) => {
    const started = await host.start(startOptions);
    agents.push(started.agent);
    return started;
  };
  return { host, start, fill, free: () => rmSync(filler) };
}

function running(host: HostOfFakes) {
  return host.runtime.containers
    .filter(({ state }) => state === "running")
    .map(({ id, pid }) => ({ id, pid }));
}

function bootIdOf(host: HostOfFakes): string | undefined {
  return readFileSync(join(host.dataDir, "boot-id"), "utf8").split(" ")[0];
}

function fileBytes(path: string): number | undefined {
  try {
    return readFileSync(path).byteLength;
  } catch {
    return undefined;
  }
}
