import { join } from "node:path";
import { showProgress } from "../instance/progress.ts";
import { driverFor, limitFor } from "../lab-hosts/host-kinds.ts";
import {
  joinLine,
  keepPackages,
  offerPackages,
  providePackages,
  usePackages,
} from "../lab-hosts/install-fleet.ts";
import { Lab } from "../lab-hosts/lab.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { loadImage } from "../lab-hosts/load-image.ts";
import { goArchitecture } from "../lib/architecture.ts";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { buildPackages } from "../packaging/build-packages.ts";
import { claimLab } from "./claim-lab.ts";
import { idleNear, LabScene, zonedWeb } from "./lab-scene.ts";

/** Three hosts with an agent in three zones, and a coordinator on a separate host, for tests. */

export const IMAGE = "localhost/forage/busybox:1";
/** The pods of the service `web`: two on each host. */
export const REPLICAS = 6;
export const NODE_PORT = 30_080;

export const CHECKOUT = join(import.meta.dirname, "..", "..");
const AGENTS = 3;
export const FIRST_VERSION = "0.1.0";
const BACKUPS = "/var/lib/forage/coordinator/backups";
const SETTINGS_FILE = "/etc/forage/coordinator.yaml";
/** Settings that leave a host without its agent for the duration of a package replacement. */
const REPLACE_LATE = "\nnodes:\n  unreachableTolerationSeconds: 3600\n";
/**
 * Settings that replace a node's pods soon after it is lost. On a busy machine, a node that only restarts would lose
 * them, too.
 */
const REPLACE_SOON = "\nnodes:\n  unreachableTolerationSeconds: 3\n  recoveryGraceSeconds: 1\n";
const QUIET = showProgress(
  () => {},
  false,
  () => 0,
);

export class LabFleet {
  readonly lab: Lab;
  readonly scene: LabScene;
  /** The time limit of one command on a host. */
  readonly limitMs: number;
  readonly #release: () => Promise<void>;

  private constructor(lab: Lab, release: () => Promise<void>) {
    this.lab = lab;
    this.scene = new LabScene(lab);
    this.limitMs = limitFor(lab.driver.kind).timeout;
    this.#release = release;
  }

  /** Boots bare hosts of the kind, which can install the packages of the directory. Default: those of this checkout. */
  static async boot(kind: string, packages?: string): Promise<LabFleet> {
    const { name: labName, release } = await claimLab();
    try {
      const { gateway } = driverFor(kind, labName);
      const hosts = planHosts({ count: AGENTS, coordinatorOwnHost: true, gateway });
      const lab = await Lab.create(labName, kind, hosts);
      await lab.driver.prepare(() => {});
      if (packages === undefined) await providePackages(lab, CHECKOUT, FIRST_VERSION, QUIET);
      else await offerPackages(lab, packages);
      await Promise.all(lab.hosts.map(({ name }) => lab.boot(name)));
      for (const host of lab.hosts) await usePackages(lab, host);
      return new LabFleet(lab, release);
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** Removes the hosts with everything on them. */
  close(): Promise<void> {
    return this.#release();
  }

  /**
   * Builds the packages of this checkout with another version, for the next `apt-get update` of the hosts. Keeps a copy
   * of the former ones.
   */
  async provide(version: string): Promise<void> {
    keepPackages(this.lab);
    await providePackages(this.lab, CHECKOUT, version, QUIET);
  }

  /** Builds the archive for other distributions, and returns its path. */
  async buildArchive(): Promise<string> {
    const outDir = this.lab.path("archive");
    const flags = {
      architectures: [goArchitecture()],
      formats: ["tar"],
      outDir,
      version: FIRST_VERSION,
      compressionLevel: 1,
    } as const;
    const [path = ""] = await buildPackages(CHECKOUT, flags, QUIET);
    return path;
  }

  /** Runs a shell command line on the host and returns its output. */
  async onHost(name: string, line: string): Promise<string> {
    return (await this.lab.exec(name, ["sh", "-c", line], { timeoutMs: this.limitMs })).stdout;
  }

  async installCoordinator(): Promise<void> {
    await this.onHost("coordinator", "apt-get -qq --yes install forage-coordinator");
  }

  /**
   * Installs the agent and joins with the command that an operator pastes. Returns the part of the command that joins.
   */
  async joinHost(name: string): Promise<string> {
    const line = await joinLine(this.lab, this.lab.host(name));
    await this.onHost(name, `apt-get -qq --yes install forage-agent && ${line}`);
    return line;
  }

  /** Loads IMAGE on the hosts. */
  async loadImage(...hosts: readonly string[]): Promise<void> {
    await loadImage(this.lab, hosts, await buildBusyboxImage({ name: IMAGE }));
  }

  /**
   * Does the work while the coordinator replaces the pods of lost nodes after seconds, instead of the default's half
   * minute.
   */
  replacingSoon(work: () => Promise<void>): Promise<void> {
    return this.#withSettings(REPLACE_SOON, work);
  }

  /** Does the work while pods stay on disconnected nodes, as an operator configures it for longer planned work. */
  replacingLate(work: () => Promise<void>): Promise<void> {
    return this.#withSettings(REPLACE_LATE, work);
  }

  async #withSettings(lines: string, work: () => Promise<void>): Promise<void> {
    const kept = `${SETTINGS_FILE}.kept`;
    const settings = lines.replaceAll("\n", "\\n");
    await this.#restartCoordinator(
      `cp --preserve ${SETTINGS_FILE} ${kept} && printf '${settings}' >> ${SETTINGS_FILE}`,
    );
    await work();
    await this.#restartCoordinator(`mv ${kept} ${SETTINGS_FILE}`);
  }

  /** Replaces the coordinator's store with the newest of its own backups. */
  async restoreNewest(): Promise<void> {
    const newest = `$(ls -t ${BACKUPS}/*.backup | head -n 1)`;
    const settings = `--config ${SETTINGS_FILE}`;
    await this.onHost("coordinator", `forage-coordinator restore "${newest}" --replace --yes ${settings}`);
  }

  /** Restarts the coordinator. Returns when all agents have connected; before that, all nodes count as Ready. */
  async #restartCoordinator(change: string): Promise<void> {
    await this.onHost("coordinator", `${change} && systemctl restart forage-coordinator`);
    await this.scene.allConnected();
    await this.scene.allReady();
  }

  /** Applies a service with pods in all zones, a pod of the first zone and one next to it. */
  async applyBundle(): Promise<void> {
    await this.scene.apply([
      zonedWeb(REPLICAS, IMAGE),
      {
        name: "web",
        service: {
          ...{ target: "web", type: "NodePort" },
          ports: [{ name: "http", port: 80, targetPort: 8080, nodePort: NODE_PORT }],
        },
      },
      idleNear("near", IMAGE, { nodeSelector: { zone: "z1" } }),
      idleNear("beside", IMAGE, {
        affinity: {
          podAffinity: {
            required: [{ labelSelector: { matchLabels: { app: "near" } }, topologyKey: "zone" }],
          },
        },
      }),
    ]);
  }

  async isUnreachable(name: string): Promise<boolean> {
    return (await this.scene.nodes()).some((node) => node.name === name && node.isUnreachable);
  }

  /** Waits until all pods of `web` are ready on other hosts than this one. */
  async untilReplaced(name: string): Promise<void> {
    await this.scene.until(`the pods of ${name} are replaced`, async () => {
      const ready = (await this.scene.pods("web")).filter((pod) => pod.node !== name && pod.ready);
      return ready.length === REPLICAS;
    });
  }

  /** Waits until the containers of all hosts are exactly those of the coordinator's pods. */
  async onlyTheKnown(): Promise<void> {
    await this.scene.until("every container belongs to one pod", async () => {
      const workloads = ["web", "near", "beside", "far"];
      const pods = (await Promise.all(workloads.map((name) => this.scene.pods(name)))).flat();
      const running = await this.scene.allRunning();
      return (
        running.length === pods.length && pods.every(({ containers: [id = ""] }) => running.includes(id))
      );
    });
  }
}

export function uids(pods: readonly { readonly uid: string }[]): readonly string[] {
  return pods.map(({ uid }) => uid).sort();
}
