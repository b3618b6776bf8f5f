import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { nodeId } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import { createKeyAndCsr } from "@forage/identity/csr";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { PodConfig, ResourceRequirements } from "@forage/proto/forest/v1/forage";
import { Agent } from "../src/agent.ts";
import { systemClock } from "../src/clock.ts";
import { readConfig } from "../src/config.ts";
import { DamageReports } from "../src/damage-reports.ts";
import { HostDevices } from "../src/devices/host-devices.ts";
import { parsePool } from "../src/devices/parse-pool.ts";
import { Journal } from "../src/journal/journal.ts";
import { loadJournalKey } from "../src/journal/journal-key.ts";
import { derOf } from "../src/link/enroll.ts";
import { IdentityFiles } from "../src/link/node-identity.ts";
import { FakeNetwork, FakeNetworkHost } from "../src/network/fake.ts";
import { FakeNetworkFiles } from "../src/network/network-files.ts";
import { FakeRuntime } from "../src/runtime/fake.ts";
import { FakeVolumes } from "../src/volumes/fake.ts";
import { aHost } from "./a-host.ts";
import { anAssignment } from "./an-assignment.ts";
import { NoGateway } from "./no-gateway.ts";
import { NoServices } from "./no-services.ts";
import { until } from "./until.ts";

const LIMIT = { timeout: 60_000 };
const IMAGE = "localhost/forage/busybox:1";
const GPU = "example.com/gpu";
const PODS = 3;

/** How a file is damaged; no file of the agent has a byte that does not matter at its middle. */
const DAMAGES: Readonly<Record<string, (path: string) => Promise<void>>> = {
  flipped: async (path) => {
    const bytes = await readFile(path);
    const at = Math.floor(bytes.length / 2);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 0x01, at);
    await writeFile(path, bytes);
  },
  emptied: (path) => truncate(path),
  removed: (path) => rm(path),
};

/**
 * Files whose damage needs no report, because the agent doesn't decide by them; the link reports damage to the identity's files.
 * A missing record of devices looks like one that never existed.
 */
const UNNOTICED = [/^images\//, /^pods\//, /^identity\//];
const UNNOTICED_REMOVED = /^devices\//;

test("no single damaged file of the agent ends a container, and each is noticed", LIMIT, async (t) => {
  const host = await HostOfFakes.make(t);
  await host.begin();
  const running = host.runtime.containers.map(({ id, pid }) => ({ id, pid }));
  const published = host.network.published.get("web");
  const files = (await host.files()).filter((file) => !file.endsWith(".log"));
  for (const expected of [
    "journal/index",
    "journal.key",
    "boot-id",
    "journal/states/web.state",
    "devices/plain",
    "identity/node.pem",
  ]) {
    assert.ok(files.includes(expected), `${expected} among ${files}`);
  }
  for (const file of files) {
    for (const [how, damage] of Object.entries(DAMAGES)) {
      await host.restoreFiles();
      if ((await readFile(join(host.dataDir, file))).length === 0 && how !== "removed") continue;
      await damage(join(host.dataDir, file));

      const noted = await host.runOnce();

      const now = host.runtime.containers.filter(({ state }) => state === "running");
      assert.deepEqual(
        now.map(({ id, pid }) => ({ id, pid })),
        running,
        `${file} ${how}`,
      );
      assert.deepEqual(host.network.published.get("web"), published, `host ports, ${file} ${how}`);
      const isQuiet = how === "removed" && UNNOTICED_REMOVED.test(file);
      if (!isQuiet && !UNNOTICED.some((pattern) => pattern.test(file)))
        assert.notEqual(noted, undefined, `${file} ${how}`);
    }
  }
});

/** A host with real files, and everything else in memory, which outlives the agents that run on it. */
class HostOfFakes {
  readonly dataDir: string;
  readonly runtime = new FakeRuntime({ clock: systemClock, images: [IMAGE] });
  readonly network = new FakeNetworkHost();
  readonly #volumes = new FakeVolumes();
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
    this.dataDir = join(dir, "data");
  }

  static async make(t: TestContext): Promise<HostOfFakes> {
    const dir = await mkdtemp(join(tmpdir(), "forage-damaged-"));
    t.after(() => rm(dir, { recursive: true, force: true }));
    return new HostOfFakes(dir);
  }

  /** Brings the pods up, and keeps a copy of what the agent has on disk then. */
  async begin(): Promise<void> {
    this.runtime.execs.set("hook", { exitCode: 0 });
    const journal = await Journal.open({
      dir: join(this.dataDir, "journal"),
      key: await loadJournalKey({ dir: this.dataDir }),
      signal: new AbortController().signal,
    });
    await journal.replace({ clusterId: "cluster", revision: 1n, pods: assignments() });
    await journal.close();
    await writeIdentity(this.dataDir);
    const { agent } = await this.#start();
    await until(
      "all run",
      () => this.runtime.containers.length === PODS && this.network.published.has("web"),
    );
    await agent.close();
    await cp(this.dataDir, this.#copy, { recursive: true });
  }

  async files(): Promise<readonly string[]> {
    const entries = await readdir(this.dataDir, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(this.dataDir, join(entry.parentPath, entry.name)))
      .sort();
  }

  async restoreFiles(): Promise<void> {
    await rm(this.dataDir, { recursive: true });
    await cp(this.#copy, this.dataDir, { recursive: true });
  }

  /** One life of an agent. Returns what it noted of damaged files. */
  async runOnce(): Promise<string | undefined> {
    const { agent, damageReports } = await this.#start();
    await agent.ready;
    // Lets the pods' loops decide a few times.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setTimeout(resolve, 2));
    await agent.close();
    return damageReports.summary();
  }

  get #copy(): string {
    return join(this.#dir, "copy");
  }

  async #start(): Promise<{ agent: Agent; damageReports: DamageReports }> {
    const settings = { dataDir: this.dataDir, runDir: join(this.#dir, "run"), coordinator: "127.0.0.1:1" };
    const flags = {
      "data-dir": settings.dataDir,
      "run-dir": settings.runDir,
      coordinator: settings.coordinator,
    };
    const argv = Object.entries({ ...flags, "http-listen": "off", "node-name": "node-1" }).map(
      ([name, value]) => `--${name}=${value}`,
    );
    const config = await readConfig(argv, {}, "node-1");
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const damageReports = new DamageReports({ dataDir: this.dataDir, log });
    this.#volumes.restart();
    const agent = await Agent.start({
      ...{
        config,
        version: "0",
        clock: systemClock,
        random: () => 0,
        sessionId: "session",
        log,
        damageReports,
      },
      runtime: this.runtime,
      network: new FakeNetwork(this.network),
      networkFiles: new FakeNetworkFiles(),
      services: new NoServices(),
      gateway: new NoGateway(),
      devices: new HostDevices({
        pool: parsePool({ [GPU]: ["/dev/a", "/dev/b"] }),
        directory: join(this.dataDir, "devices"),
        noteDamage: damageReports.note,
        isDevice: async () => true,
      }),
      makeVolumes: () => this.#volumes,
      probe: async () => ({ outcome: "passed" }) as never,
      hostReader: {
        identity: async () => ({ bootId: "boot", os: "", kernel: "", architecture: "amd64" }),
        measure: async () => ({
          cpuMilli: 4_000,
          memoryBytes: 2 ** 33,
          disk: { totalBytes: 2 ** 40, availableBytes: 2 ** 39 },
        }),
      } as never,
      features: aHost(),
      addresses: ["127.0.0.1"],
      ownCommand: [process.execPath, ""],
    });
    return { agent, damageReports };
  }
}

/** As a node that has joined has it. */
async function writeIdentity(dataDir: string): Promise<void> {
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const { keyPem, csrPem } = await createKeyAndCsr();
  const issued = await authority.issueNode(nodeId("node-1"), derOf(csrPem));
  await new IdentityFiles(join(dataDir, "identity")).save(keyPem, issued.chainPem, authority.certPem);
}

/** One with a port and a hook that must not run twice, a plain one, and one on the host's network. */
function assignments() {
  const hostNetwork = PodTemplate.fromPartial({
    podConfig: PodConfig.fromPartial({ hostNetwork: true }),
  }).podConfig;
  return [
    anAssignment({ uid: "web", port: 8080, command: ["web"] }),
    anAssignment({
      ...{ uid: "plain", command: ["plain"] },
      container: { resources: ResourceRequirements.fromPartial({ limits: { extended: { [GPU]: "1" } } }) },
    }),
    anAssignment({ uid: "hosted", command: ["hosted"], template: { podConfig: hostNetwork } }),
  ];
}
