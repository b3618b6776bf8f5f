import { readFile } from "node:fs/promises";
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import type { LinkState } from "../link/link-state.ts";
import type { Step } from "../pods/step.ts";
import { addContainerMetrics, type ContainerMetricSources } from "./container-metrics.ts";

/** The sources of the metrics, which are read at each scrape. */
export interface MetricSources extends ContainerMetricSources {
  readonly link: () => LinkState;
  readonly assignmentRevision: () => bigint;
  readonly sessions: () => number;
  /** Reports whether the gateway's proxy accepts requests. Undefined if the host is not a gateway. */
  readonly gatewayReady: () => boolean | undefined;
  readonly disk: () => Promise<{ readonly totalBytes: number; readonly availableBytes: number }>;
  readonly nowMs: () => number;
}

const PHASES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING", "REMOVED"] as const;
// From a step in memory to a slow pull or a long grace period.
const STEP_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The agent's metrics in a separate registry. Values are read at each scrape, and nothing runs in between. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #steps: Histogram<"step" | "outcome">;
  readonly #journalFailures: Counter;

  constructor(sources: MetricSources) {
    const registers = [this.#registry];
    this.#steps = new Histogram({
      name: "forage_agent_pod_step_seconds",
      help: "Duration of pods' steps, by kind and outcome.",
      labelNames: ["step", "outcome"],
      buckets: STEP_SECONDS,
      registers,
    });
    this.#journalFailures = new Counter({
      name: "forage_agent_journal_write_failures_total",
      help: "Writes of pods' states that failed.",
      registers,
    });
    this.#addPods(sources);
    addContainerMetrics(this.#registry, sources);
    this.#addLink(sources);
    this.#addProcess(sources);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  stepped(step: Step, tookMs: number, failed: boolean): void {
    this.#steps.observe({ step: step.type, outcome: failed ? "error" : "ok" }, tookMs / 1000);
  }

  journalWriteFailed(): void {
    this.#journalFailures.inc();
  }

  render(): Promise<string> {
    return this.#registry.metrics();
  }

  #addPods({ statuses }: MetricSources): void {
    const registers = [this.#registry];
    new Gauge({
      name: "forage_agent_pods",
      help: "Pods on this host by phase.",
      labelNames: ["phase"],
      registers,
      collect() {
        for (const phase of PHASES) this.set({ phase }, statuses().filter((it) => it.phase === phase).length);
      },
    });
    new Gauge({
      name: "forage_agent_pods_ready",
      help: "Pods on this host that are ready.",
      registers,
      collect() {
        this.set(statuses().filter((it) => it.ready).length);
      },
    });
    new Gauge({
      name: "forage_agent_container_restarts",
      help: "Restarts of the containers that are currently on this host.",
      registers,
      collect() {
        const containers = statuses().flatMap((it) => it.containers);
        this.set(containers.reduce((sum, it) => sum + it.restarts, 0));
      },
    });
  }

  #addLink({ link, assignmentRevision, sessions, gatewayReady, nowMs }: MetricSources): void {
    const registers = [this.#registry];
    new Gauge({
      name: "forage_agent_gateway_ready",
      help: "1 while the gateway accepts requests; only on gateways.",
      registers,
      collect() {
        const ready = gatewayReady();
        if (ready === undefined) this.remove();
        else this.set(ready ? 1 : 0);
      },
    });
    new Gauge({
      name: "forage_agent_connected",
      help: "1 while the agent is connected to its coordinator.",
      registers,
      collect() {
        this.set(link().kind === "connected" ? 1 : 0);
      },
    });
    new Gauge({
      name: "forage_agent_certificate_seconds",
      help: "Remaining validity of the node's certificate.",
      registers,
      collect() {
        const endsMs = link().certificateEndsMs;
        if (endsMs !== undefined) this.set((endsMs - nowMs()) / 1000);
      },
    });
    new Gauge({
      name: "forage_agent_assignment_revision",
      help: "The newest assignment revision on disk.",
      registers,
      collect() {
        this.set(Number(assignmentRevision()));
      },
    });
    new Gauge({
      name: "forage_agent_sessions",
      help: "Open log and exec sessions.",
      registers,
      collect() {
        this.set(sessions());
      },
    });
  }

  #addProcess({ disk }: MetricSources): void {
    const registers = [this.#registry];
    new Gauge({
      name: "forage_agent_disk_bytes",
      help: "Size and free room of the file system with the agent's data.",
      labelNames: ["what"],
      registers,
      async collect() {
        const { totalBytes, availableBytes } = await disk();
        this.set({ what: "total" }, totalBytes);
        this.set({ what: "available" }, availableBytes);
      },
    });
    new Gauge({
      name: "process_resident_memory_bytes",
      help: "Resident memory of the agent.",
      registers,
      async collect() {
        const pages = (await readFile("/proc/self/statm", "utf8")).split(" ")[1];
        this.set(Number(pages) * 4096);
      },
    });
    new Gauge({
      name: "process_cpu_seconds_total",
      help: "CPU time of the agent itself, without the programs that it calls.",
      registers,
      collect() {
        const { user, system } = process.cpuUsage();
        this.set((user + system) / 1e6);
      },
    });
  }
}
