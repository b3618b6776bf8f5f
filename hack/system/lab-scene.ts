import { join } from "node:path";
import type { Lab } from "../lab-hosts/lab.ts";
import { spawnProgram } from "../lib/spawn-program.ts";
import { waitFor } from "../lib/wait-for.ts";
import type { LoadResult } from "./peer.ts";

/** A pod as the coordinator's API describes it, with the fields that tests of the lab read. */
export interface LabPod {
  readonly uid: string;
  readonly name: string;
  readonly node: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly containers: readonly string[];
}

export interface LabNode {
  readonly name: string;
  readonly isReady: boolean;
  readonly isUnreachable: boolean;
}

/** An entry of the audit log for a call that was refused. */
export interface LabRefusal {
  readonly event: string;
  readonly method?: string;
  readonly caller?: string;
  readonly message?: string;
}

interface WirePod {
  readonly uid: string;
  readonly name: string;
  readonly node?: string;
  readonly workloadName: string;
  readonly status?: {
    readonly ready?: boolean;
    readonly containers?: readonly { readonly containerId?: string; readonly restartCount?: number }[];
  };
}

interface WireNode {
  readonly name: string;
  readonly ready?: boolean;
  readonly unreachable?: boolean;
}

export const NAMESPACE = "lab";
/** A generous limit: durations are printed, and only what never happens fails. Slower kinds of hosts have more time. */
const LIMIT_MS = 120_000;
const COMMAND_SECONDS = 90;
const EVERY_MS = 100;
const HTTP_PORT = 7601;
const AGENT_METRICS = "http://127.0.0.1:7602/metrics";
const PEER = join(import.meta.dirname, "peer.ts");
const LOAD_CLIENTS = 2;

/** Reads the state of a lab's fleet from the coordinator and from the hosts. */
export class LabScene {
  readonly lab: Lab;

  constructor(lab: Lab) {
    this.lab = lab;
  }

  get #limitMs(): number {
    return LIMIT_MS * this.lab.driver.patience;
  }

  /** The time-out flags of a command that waits for pods. */
  get timeout(): readonly string[] {
    return ["--timeout", `${COMMAND_SECONDS * this.lab.driver.patience}s`];
  }

  async apply(resources: readonly object[]): Promise<void> {
    const manifest = JSON.stringify({ namespace: NAMESPACE, resources });
    await this.lab.forage(["apply", "--file", "-", ...this.timeout], {
      input: manifest,
      timeoutMs: this.#limitMs,
    });
  }

  async nodes(): Promise<readonly LabNode[]> {
    const nodes = await this.#get<WireNode>(["nodes"]);
    return nodes.map(({ name, ready = false, unreachable = false }) => ({
      name,
      isReady: ready,
      isUnreachable: unreachable,
    }));
  }

  /** Returns the pods of one workload. */
  async pods(workload: string): Promise<readonly LabPod[]> {
    const pods = await this.#get<WirePod>(["pods", "--namespace", NAMESPACE]);
    return pods
      .filter(({ workloadName }) => workloadName === workload)
      .map(({ uid, name, node = "", status }) => ({
        ...{ uid, name, node },
        ready: status?.ready ?? false,
        restarts: (status?.containers ?? []).reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
        containers: (status?.containers ?? []).flatMap(({ containerId }) => containerId ?? []),
      }));
  }

  /** Returns the pods of the workload once exactly `count` exist and are ready. */
  serving(workload: string, count: number): Promise<readonly LabPod[]> {
    return this.until(`${count} pods of ${workload} are ready`, async () => {
      const pods = await this.pods(workload);
      return pods.length === count && pods.every(({ ready }) => ready) ? pods : undefined;
    });
  }

  async allReady(): Promise<void> {
    const count = this.lab.hosts.filter(({ runsAgent }) => runsAgent).length;
    await this.until("all nodes are Ready", async () => {
      const nodes = await this.nodes();
      return nodes.length === count && nodes.every(({ isReady }) => isReady);
    });
  }

  /** Waits until all agents report that they are connected to the coordinator. */
  async allConnected(): Promise<void> {
    const agents = this.lab.hosts.filter(({ runsAgent }) => runsAgent);
    await this.until("all agents are connected", async () => {
      const metrics = await Promise.all(agents.map(({ name }) => this.ask(name, AGENT_METRICS)));
      return metrics.every((text = "") => /^forage_agent_connected 1$/m.test(text));
    });
  }

  /** Returns the reasons why the coordinator is not ready; an empty list if it is. */
  async readiness(): Promise<readonly string[]> {
    const url = `http://127.0.0.1:${HTTP_PORT}/readyz`;
    const { stdout } = await this.lab.exec(this.lab.coordinator.name, ["curl", "--silent", url]);
    return (JSON.parse(stdout) as { readonly reasons: readonly string[] }).reasons;
  }

  /** Returns the newest refused calls of the audit log. */
  async refusals(): Promise<readonly LabRefusal[]> {
    const { stdout } = await this.lab.forage(["audit", "--limit", "1000", "--output", "json"]);
    const entries = [JSON.parse(stdout) as LabRefusal | readonly LabRefusal[]].flat() as LabRefusal[];
    return entries.filter(({ event }) => event === "refused");
  }

  /** Returns the ids of the containers that run on the host, whether or not the coordinator knows them. */
  async running(host: string): Promise<readonly string[]> {
    const { stdout } = await this.lab.exec(host, ["ctr", "--namespace", "forage", "tasks", "list"]);
    return stdout
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([id = "", , status]) => (status === "RUNNING" ? [id] : []))
      .sort();
  }

  /** Returns the ids of the running containers of all hosts with an agent. */
  async allRunning(): Promise<readonly string[]> {
    const agents = this.lab.hosts.filter(({ runsAgent }) => runsAgent);
    return (await Promise.all(agents.map(({ name }) => this.running(name)))).flat().sort();
  }

  /** Returns the reason why the coordinator refuses the resources; `undefined` if it has accepted them. */
  async refusal(resources: readonly object[]): Promise<string | undefined> {
    const { stderr, exitCode } = await this.lab.forage(["apply", "--file", "-", ...this.timeout], {
      input: JSON.stringify({ namespace: NAMESPACE, resources }),
      timeoutMs: this.#limitMs,
      allowFailure: true,
    });
    return exitCode === 0 ? undefined : stderr;
  }

  /** Sends requests from outside the hosts until it is ended. Resolves once the first are on their way. */
  async startLoad(address: string, port: number): Promise<{ end(): Promise<LoadResult> }> {
    const [file = "", ...args] = this.lab.besideCommand([
      ...[process.execPath, PEER, "load", address, String(port), String(LOAD_CLIENTS)],
    ]);
    const program = spawnProgram(file, args, { logPath: this.lab.path("load.log") });
    await this.until("the load starts", async () => program.readLog().startsWith("started\n"));
    return {
      end: async () => {
        program.kill("SIGTERM");
        await program.exited;
        return JSON.parse(program.readLog().split("\n")[1] ?? "null") as LoadResult;
      },
    };
  }

  /** Polls until the answer is neither undefined nor false. */
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    return waitFor(ask, { what, limitMs: this.#limitMs, everyMs: EVERY_MS });
  }

  /**
   * Returns the answer of a service's virtual IP or name on the host; `undefined` if there was none within a second.
   */
  async ask(host: string, url: string): Promise<string | undefined> {
    const { stdout, exitCode } = await this.lab.exec(
      host,
      ["curl", "--silent", "--fail", "--max-time", "1", url],
      { allowFailure: true },
    );
    return exitCode === 0 ? stdout.trim() : undefined;
  }

  /** Waits until ten requests in a row from the host are answered. */
  async answersOnly(host: string, url: string): Promise<void> {
    await this.until("ten requests in a row are answered", async () => {
      for (let count = 0; count < 10; count++) if ((await this.ask(host, url)) === undefined) return false;
      return true;
    });
  }

  /** Returns the different answers that a pod gets from the service's name in `times` requests. */
  async askFromPod(pod: string, service: string, times: number): Promise<ReadonlySet<string>> {
    // In the image's static busybox only nslookup can resolve names.
    const line = `ip=$(nslookup "$1" | sed -n 's/^Address: //p' | tail -n 1)
for i in $(seq "$2"); do printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 "$ip" 80 | tail -n 1; done`;
    const name = `${service}.${NAMESPACE}.svc.cluster.local`;
    const { stdout } = await this.lab.forage(
      ["exec", "--namespace", NAMESPACE, pod, "--", "sh", "-c", line, "sh", name, String(times)],
      { allowFailure: true },
    );
    return new Set(stdout.split("\n").map((answer) => answer.trim()));
  }

  /** Returns the virtual IP of the service. */
  async virtualIp(service: string): Promise<string> {
    const [found] = await this.#get<{ readonly virtualIps?: readonly string[] }>([
      ...[`service/${service}`, "--namespace", NAMESPACE],
    ]);
    const [ip] = found?.virtualIps ?? [];
    if (ip === undefined) throw new Error(`${service} has no virtual IP`);
    return ip;
  }

  async #get<T>(args: readonly string[]): Promise<readonly T[]> {
    const { stdout } = await this.lab.forage(["get", ...args, "--output", "json"]);
    return [JSON.parse(stdout) as T | readonly T[]].flat() as readonly T[];
  }
}

/** Returns a web server that answers with its pod's name, spread over the zones as evenly as possible. */
export function zonedWeb(replicas: number, image: string): object {
  const serve = 'mkdir -p /tmp/www; echo "$POD" > /tmp/www/index.html; httpd -f -p 8080 -h /tmp/www &';
  return {
    name: "web",
    containerService: {
      scaling: { replicas },
      podConfig: {
        labels: { app: "web" },
        terminationGracePeriodSeconds: 10,
        topologySpreadConstraints: [
          {
            ...{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" },
            labelSelector: { matchLabels: { app: "web" } },
          },
        ],
      },
      container: {
        ...{ name: "main", image, imagePullPolicy: "IfNotPresent" },
        // As process 1 a shell handles SIGTERM only with a trap. It continues to serve until all hosts know that it is
        // stopping.
        command: ["sh", "-c", `${serve} trap "sleep 1; kill $!; exit" TERM; wait`],
        env: [{ name: "POD", fieldRef: "metadata.name" }],
        ports: [{ name: "http", containerPort: 8080 }],
        readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1, timeoutSeconds: 30 },
        resources: { requests: { cpu: "10m", memory: "16Mi" } },
      },
    },
  };
}

/** Returns a pod that waits, in the zone of the pods with the label `app=OTHER`. */
export function idleNear(name: string, image: string, podConfig: object): object {
  return {
    name,
    containerService: {
      scaling: { replicas: 1 },
      podConfig: { labels: { app: name }, terminationGracePeriodSeconds: 1, ...podConfig },
      container: {
        ...{ name: "main", image, imagePullPolicy: "IfNotPresent" },
        command: ["sh", "-c", 'trap "exit" TERM; while :; do sleep 1000 & wait $!; done'],
        resources: { requests: { cpu: "10m", memory: "16Mi" } },
      },
    },
  };
}

/** Measures the seconds that the work takes. */
export async function timed<T>(work: () => Promise<T>): Promise<{ value: T; seconds: number }> {
  const startMs = performance.now();
  const value = await work();
  return { value, seconds: Math.round((performance.now() - startMs) / 100) / 10 };
}

/** Returns the number of pods on each node. */
export function distribution(pods: readonly LabPod[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { node } of pods) counts[node] = (counts[node] ?? 0) + 1;
  return counts;
}
