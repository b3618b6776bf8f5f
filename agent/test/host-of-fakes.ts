import { createHash, randomBytes } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { TestContext } from "node:test";
import { nodeId } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import { createKeyAndCsr } from "@forage/identity/csr";
import {
  GatewayUpdate,
  PodAssignment,
  PodTemplate,
  ServiceUpdate,
} from "@forage/proto/forage/agent/v1/agent";
import { PodConfig, ResourceRequirements, Volume } from "@forage/proto/forest/v1/forage";
import { Agent } from "../src/agent.ts";
import { systemClock } from "../src/clock.ts";
import { type Config, readConfig } from "../src/config.ts";
import { DamageReports, type NoteDamage } from "../src/damage-reports.ts";
import { HostDevices } from "../src/devices/host-devices.ts";
import { parsePool } from "../src/devices/parse-pool.ts";
import { EnvoyPaths } from "../src/gateway/envoy/envoy-paths.ts";
import { HostGateway } from "../src/gateway/host-gateway.ts";
import { openKnownGateway } from "../src/gateway/open-gateway.ts";
import { hostOptions } from "../src/host-options.ts";
import { Journal } from "../src/journal/journal.ts";
import { type JournalKey, loadJournalKey } from "../src/journal/journal-key.ts";
import { CoordinatorAddresses } from "../src/link/coordinator-addresses.ts";
import { derOf } from "../src/link/enroll.ts";
import { IdentityFiles } from "../src/link/node-identity.ts";
import { FakeNetwork, FakeNetworkHost } from "../src/network/fake.ts";
import { FakeNetworkFiles } from "../src/network/network-files.ts";
import { openKey } from "../src/open-key.ts";
import { FakeRuntime } from "../src/runtime/fake.ts";
import { restoreHelpers } from "../src/runtime/nerdctl/helper-programs.ts";
import { HostServiceNetwork } from "../src/service-network.ts";
import { HostVolumes } from "../src/volumes/host-volumes.ts";
import type { PodVolumes, VolumeEvents } from "../src/volumes/volumes.ts";
import { aHost } from "./a-host.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeEnvoy } from "./fake-envoy.ts";
import { FakeServiceTables } from "./fake-service-tables.ts";
import { until } from "./until.ts";

const IMAGE = "localhost/forage/busybox:1";
const GPU = "example.com/gpu";
// Links in volumes are relative.
const COPY = { recursive: true, verbatimSymlinks: true };

export const SERVICE_IP = "10.96.0.5";
const SERVICE = {
  ...{ namespace: "default", name: "web", type: "ClusterIP", virtualIps: [SERVICE_IP] },
  ports: [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }],
  endpoints: [{ pod: "web", node: "node-1", podIp: "10.64.0.9", hostIp: "127.0.0.1", hostPorts: [20_000] }],
};
const HOST = {
  hostname: "app.example.com",
  rules: [{ route: "default/r", backends: [{ namespace: "default", service: "web", port: 80, weight: 1 }] }],
};

const EARLIER_TEXT = '#!/bin/sh\nexec runc "$@"\n';
const EARLIER_DIGEST = createHash("sha256").update(EARLIER_TEXT).digest("hex").slice(0, 12);
/** A program through which an earlier version of the agent started containers. */
export const EARLIER_PROGRAM = { path: `programs/stdin-${EARLIER_DIGEST}`, text: EARLIER_TEXT };

interface StartOptions {
  readonly diskReserveBytes?: number;
  /**
   * Random numbers for the link's delays and choice of coordinators. Default: 0, so the link does not wait and uses the
   * first one.
   */
  readonly random?: () => number;
}

interface HostOfFakesOptions {
  /** The directory of all files of the host, removed when the test ends. Default: a new directory. */
  readonly dir?: string;
  /** The agent's data directory. Default: `data` in `dir`. */
  readonly dataDir?: string;
  /** Flags of the agent. Default: those of a host whose coordinator is unreachable. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The host's own address, which keeps its ports apart from those of other hosts. Default: 127.0.0.1. */
  readonly address?: string;
  /** Whether the agent uses the addresses that coordinators report. Default: true. False if it can't reach them. */
  readonly learnsAddresses?: boolean;
}

/** Addresses that never change. */
class OwnAddresses extends CoordinatorAddresses {
  override learn(): boolean {
    return false;
  }
}

/** A host with real files and everything else in memory. It outlives the agents that run on it. */
export class HostOfFakes {
  readonly dataDir: string;
  readonly runtime = new FakeRuntime({ clock: systemClock, images: [IMAGE] });
  readonly network = new FakeNetworkHost();
  readonly kernel = new FakeServiceTables();
  readonly envoy: FakeEnvoy;
  /** The boot id, which changes with a reboot. */
  bootId = "00000000-0000-4000-8000-000000000001";
  readonly #dir: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #address: string;
  readonly #learnsAddresses: boolean;
  /** Agents that the test may have left open. */
  readonly #agents = new Set<Agent>();

  private constructor(dir: string, options: HostOfFakesOptions) {
    const { settings = {}, dataDir, address = "127.0.0.1", learnsAddresses = true } = options;
    this.#dir = dir;
    this.#learnsAddresses = learnsAddresses;
    this.#settings = settings;
    this.#address = address;
    this.dataDir = dataDir ?? join(dir, "data");
    this.envoy = new FakeEnvoy(new EnvoyPaths(join(dir, "run", "gateway")));
  }

  static async make(t: TestContext, options: HostOfFakesOptions = {}): Promise<HostOfFakes> {
    const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "forage-host-")));
    const host = new HostOfFakes(dir, options);
    t.after(() => host.#end());
    return host;
  }

  async #close(agent: Agent): Promise<void> {
    this.#agents.delete(agent);
    await agent.close();
  }

  /** Closes the agents before removing the files that they write. */
  async #end(): Promise<void> {
    await Promise.all([...this.#agents].map((agent) => agent.close()));
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Starts the pods, and keeps a copy of the agent's files at that point. */
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
    await mkdir(join(this.dataDir, "programs"));
    await writeFile(join(this.dataDir, EARLIER_PROGRAM.path), EARLIER_PROGRAM.text, { mode: 0o700 });
    const { agent, parts } = await this.start();
    parts.services.apply(ServiceUpdate.fromPartial({ full: true, upserts: [SERVICE] }));
    parts.gateway.apply(GatewayUpdate.fromPartial({ full: true, gateway: "default", hosts: [HOST] }));
    await until(
      "everything runs",
      () =>
        this.runtime.containers.length === assignments().length &&
        this.network.published.has("web") &&
        this.kernel.text.includes(SERVICE_IP) &&
        parts.gateway.status()?.ready === true,
    );
    await this.#close(agent);
    await cp(this.dataDir, this.#copy, COPY);
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
    await cp(this.#copy, this.dataDir, COPY);
  }

  /** Ends all containers and empties the directories that a reboot empties. */
  async reboot(): Promise<void> {
    this.runtime.loseAll();
    this.network.reboot();
    this.kernel.reboot();
    this.envoy.reboot();
    this.bootId = this.bootId.slice(0, -1) + (Number(this.bootId.at(-1)) + 1);
    await rm(join(this.#dir, "run"), { recursive: true, force: true });
  }

  /** Runs an agent once. Returns its reports of damaged files, and the users of claims. */
  async runOnce(): Promise<{ readonly noted: string | undefined; readonly claimUsers: readonly string[] }> {
    const { agent, parts } = await this.start();
    await agent.ready;
    // Lets the pods' loops decide several times.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setTimeout(resolve, 2));
    const claims = (await parts.volumes?.claims()) ?? [];
    await this.#close(agent);
    return { noted: parts.damageReports.summary(), claimUsers: claims.flatMap(({ users }) => users) };
  }

  get #copy(): string {
    return join(this.#dir, "copy");
  }

  /** Starts an agent, which is closed at the test's end if the caller has not closed it. */
  async start({ diskReserveBytes = 0, random = () => 0 }: StartOptions = {}) {
    const config = await this.#readConfig();
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const damageReports = new DamageReports({ dataDir: this.dataDir, log });
    const { note } = damageReports;
    await restoreHelpers(join(this.dataDir, "programs"), [], note);
    const opening = { dataDir: this.dataDir, clock: systemClock, log, noteDamage: note };
    const openedKey = await openKey({ ...opening, reserveBytes: diskReserveBytes });
    const services = await this.#openServices(note);
    const gateway = await this.#openGateway(services, openedKey.journalKey, note);
    const volumes = (events: VolumeEvents) => {
      const directory = join(this.dataDir, "volumes");
      return new HostVolumes({ directory, clock: systemClock, events, noteDamage: note, useImages: false });
    };
    const opened: { volumes?: PodVolumes } = {};
    const given = { config, clock: systemClock, random, log };
    const agent = await Agent.start({
      ...{ ...hostOptions(given), ...given, version: "0", sessionId: "session" },
      coordinators: new (this.#learnsAddresses ? CoordinatorAddresses : OwnAddresses)({
        configured: [config.coordinator, ...config.coordinators],
        random,
      }),
      ...{ damageReports, ...openedKey, services, gateway, runtime: this.runtime },
      network: new FakeNetwork(this.network),
      networkFiles: new FakeNetworkFiles(),
      devices: new HostDevices({
        pool: parsePool({ [GPU]: ["/dev/a", "/dev/b"] }),
        directory: join(this.dataDir, "devices"),
        noteDamage: note,
        isDevice: async () => true,
      }),
      makeVolumes: (events) => {
        opened.volumes = volumes(events);
        return opened.volumes;
      },
      probe: async () => ({ outcome: "passed" }) as never,
      hostReader: {
        identity: async () => ({ bootId: this.bootId, os: "", kernel: "", architecture: "amd64" }),
        measure: async () => ({
          cpuMilli: 4_000,
          memoryBytes: 2 ** 33,
          disk: { totalBytes: 2 ** 40, availableBytes: 2 ** 39 },
        }),
      } as never,
      features: aHost(),
      addresses: [this.#address],
      ownCommand: [process.execPath, ""],
    });
    this.#agents.add(agent);
    return { agent, parts: { services, gateway, damageReports, volumes: opened.volumes } };
  }

  #readConfig(): Promise<Config> {
    const flags = {
      "data-dir": this.dataDir,
      "run-dir": join(this.#dir, "run"),
      coordinator: "127.0.0.1:1",
      "http-listen": "off",
      "node-name": "node-1",
      ...this.#settings,
    };
    const argv = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    return readConfig(argv, {}, "node-1");
  }

  #openServices(noteDamage: NoteDamage): Promise<HostServiceNetwork> {
    return HostServiceNetwork.open({
      ...{ dataDir: this.dataDir, instance: "test", podCidr: "10.64.0.0/16", podCidr6: undefined },
      ...{ nodeName: "node-1", reach: [4], clusterDomain: "cluster.local", dns: false, noteDamage },
      ...{ run: this.kernel.run, random: () => 0, clock: systemClock, balancerInterface: undefined },
      hostInterfaces: () => ({}),
      onEvent: () => undefined,
      onProblem: () => undefined,
    });
  }

  async #openGateway(
    { known: services }: HostServiceNetwork,
    key: JournalKey,
    noteDamage: NoteDamage,
  ): Promise<HostGateway> {
    const { places } = this.envoy;
    const known = await openKnownGateway({
      ...{ dir: join(this.dataDir, "gateway"), places, key, clock: systemClock, noteDamage },
      onError: () => undefined,
    });
    return new HostGateway({
      ...{ known, services, proxy: this.envoy, admin: this.envoy.admin, clock: systemClock },
      render: {
        ...{ places, node: "node-1", address: "127.0.0.1", ports: { http: 80, https: 443 }, trustedHops: 0 },
        accessLog: join(this.dataDir, "gateway", "access.log"),
      },
      bootstrap: {
        ...{ places, node: "node-1", instance: "test", connectionsMax: 10, memoryLimitBytes: 2 ** 30 },
      },
      onEvent: () => undefined,
    });
  }
}

/** Writes the identity of a node that has joined. */
async function writeIdentity(dataDir: string): Promise<void> {
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const { keyPem, csrPem } = await createKeyAndCsr();
  const issued = await authority.issueNode(nodeId("node-1"), derOf(csrPem));
  await new IdentityFiles(join(dataDir, "identity")).save(keyPem, issued.chainPem, authority.certPem);
}

/** Returns a pod with a port, one with devices and volumes, and one on the host's network. */
function assignments() {
  const hostNetwork = PodTemplate.fromPartial({
    podConfig: PodConfig.fromPartial({ hostNetwork: true }),
  }).podConfig;
  return [
    anAssignment({ uid: "web", port: 8080, command: ["web"] }),
    withObjects(
      anAssignment({
        ...{ uid: "plain", command: ["plain"] },
        container: { resources: ResourceRequirements.fromPartial({ limits: { extended: { [GPU]: "1" } } }) },
        template: {
          volumes: [
            Volume.fromPartial({ name: "data", source: { $case: "pvc", value: { claimName: "data" } } }),
            Volume.fromPartial({
              name: "settings",
              source: { $case: "configMap", value: { configMapName: "settings" } },
            }),
          ],
        },
      }),
    ),
    anAssignment({ uid: "hosted", command: ["hosted"], template: { podConfig: hostNetwork } }),
  ];
}

function withObjects(assignment: PodAssignment): PodAssignment {
  return PodAssignment.fromPartial({
    ...assignment,
    claims: [{ name: "data", capacityBytes: 2n ** 20n }],
    configMaps: [
      { name: "settings", version: "v", current: true, data: { "app.conf": Buffer.from("verbose = true") } },
    ],
  });
}
