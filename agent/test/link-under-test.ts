import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type PodMetricsRequests, PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import { type Clock, systemClock } from "../src/clock.ts";
import { Journal } from "../src/journal/journal.ts";
import { loadJournalKey } from "../src/journal/journal-key.ts";
import { AssignmentReader } from "../src/link/assignment-reader.ts";
import { CoordinatorAddresses } from "../src/link/coordinator-addresses.ts";
import { CoordinatorLink } from "../src/link/coordinator-link.ts";
import type { LinkState } from "../src/link/link-state.ts";
import { IdentityFiles } from "../src/link/node-identity.ts";
import { StatusOutbox } from "../src/link/status-outbox.ts";
import type { PodStatus } from "../src/pods/decide/pod-status.ts";
import type { Pod } from "../src/pods/pod.ts";
import { aHost } from "./a-host.ts";
import type { FakeCoordinator } from "./fake-coordinator.ts";
import { NoGateway } from "./no-gateway.ts";
import { NoServices } from "./no-services.ts";

/** The link with a real journal, and pods that are only recorded. */
export class LinkUnderTest {
  readonly dir: string;
  readonly journal: Journal;
  readonly identity: IdentityFiles;
  readonly outbox = new StatusOutbox();
  readonly pods = new Map<string, Pod>();
  readonly claimRemovals: string[] = [];
  readonly states: LinkState[] = [];
  /** The received requests for metrics. Undefined: the requests ended. */
  readonly asked: (PodMetricsRequests | undefined)[] = [];
  /** The results of assignment writes: the problem, or undefined after a success. */
  readonly journalProblems: (string | undefined)[] = [];
  readonly gateway = new NoGateway();
  mayJoin: (authority: string) => Promise<void> = async () => {};
  /** The address in the node's report. */
  address = "127.0.0.1";
  readonly link: CoordinatorLink;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  readonly #successors: LinkUnderTest[] = [];

  private constructor(dir: string, journal: Journal, ports: readonly number[], clock: Clock) {
    this.dir = dir;
    this.journal = journal;
    this.identity = new IdentityFiles(join(dir, "identity"));
    const addresses = ports.map((port) => ({ host: "127.0.0.1", port }));
    const coordinators = new CoordinatorAddresses({ configured: addresses, random: () => 0 });
    this.link = new CoordinatorLink({
      enroll: coordinators.with({
        nodeName: "node-1",
        tokenFile: this.tokenFile,
        files: this.identity,
        mayJoin: (authority: string) => this.mayJoin(authority),
      }),
      coordinators,
      agentVersion: "0",
      bootId: "boot",
      sessionId: "session",
      clock,
      // The low end of the jitter, for short waits.
      random: () => 0.05,
      journal,
      pods: this.#assigned(),
      reader: new AssignmentReader(aHost(), new Map(), () => this.identity.authorityPem),
      services: new NoServices(),
      gateway: this.gateway,
      removeClaims: (claims) => {
        this.claimRemovals.push(...claims.map(({ namespace, name }) => `${namespace}/${name}`));
      },
      outbox: this.outbox,
      node: {
        report: () => ({ ...aReport(), address: this.address }),
        usage: async () => ({ cpuMilli: 0n, memoryBytes: 0n, pods: 0 }),
      },
      openSession: () => undefined,
      assignmentsHealth: (problem) => this.journalProblems.push(problem),
      prefetcher: { ask: () => undefined, ended: () => undefined },
      meter: {
        ask: (requests, sink) => {
          this.asked.push(requests);
          const pods = requests.pods.map(({ podUid }) =>
            PodMetricsSample.fromPartial({ podUid, memoryBytes: 7 }),
          );
          void sink.send({ $case: "podMetrics", value: { pods } });
        },
        ended: () => this.asked.push(undefined),
      },
      events: {
        changed: (state) => this.states.push(state),
        renewed: () => undefined,
        renewalFailed: () => undefined,
      },
    });
    this.#running = this.link.run(this.#stopping.signal);
  }

  static async start(
    t: TestContext,
    { port }: FakeCoordinator,
    token: string | undefined,
    options: { after?: LinkUnderTest; clock?: Clock; further?: readonly number[] } = {},
  ): Promise<LinkUnderTest> {
    const dir = options.after?.dir ?? (await mkdtemp(join(tmpdir(), "forage-link-")));
    const { signal } = new AbortController();
    const journal = await Journal.open({
      dir: join(dir, "journal"),
      key: await loadJournalKey({ dir }),
      signal,
    });
    if (token !== undefined) await writeFile(join(dir, "token"), token);
    const ports = [port, ...(options.further ?? [])];
    const under = new LinkUnderTest(dir, journal, ports, options.clock ?? systemClock);
    // The first instance removes the shared files once the last has stopped, because hooks run in order of creation.
    if (options.after) options.after.#successors.push(under);
    else t.after(() => under.#remove());
    return under;
  }

  async #remove(): Promise<void> {
    for (const it of [this, ...this.#successors]) await it.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  get tokenFile(): string {
    return join(this.dir, "token");
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.journal.close();
  }

  #assigned() {
    return {
      replace: (pods: readonly Pod[]) => {
        this.pods.clear();
        for (const pod of pods) this.pods.set(pod.uid, pod);
      },
      apply: (upserts: readonly Pod[], removals: readonly string[]) => {
        for (const pod of upserts) this.pods.set(pod.uid, pod);
        for (const uid of removals) this.pods.delete(uid);
      },
      statuses: (): readonly PodStatus[] => [...this.pods.keys()].map((uid) => aStatus(uid)),
    };
  }
}

export function aStatus(uid: string, change: Partial<PodStatus> = {}): PodStatus {
  return {
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    specHash: `hash-${uid}`,
    phase: "RUNNING",
    ready: false,
    reason: "",
    message: "",
    podIp: "10.0.0.1",
    podIps: ["10.0.0.1"],
    containers: [],
    hostPorts: [],
    ...change,
  };
}

function aReport() {
  return {
    capacity: { cpu: "2" },
    allocatable: { cpu: "2" },
    labels: {},
    address: "127.0.0.1",
    addresses: [],
    networks: [],
    os: "",
    kernel: "",
    architecture: "",
    containerdVersion: "",
    nerdctlVersion: "",
    conditions: [],
    images: [],
    runtimeClasses: [],
    selinux: false,
    claims: [],
  };
}
