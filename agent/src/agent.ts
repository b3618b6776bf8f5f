import type { AgentOptions } from "./agent-options.ts";
import type { HostCapacity } from "./capacity/host-capacity.ts";
import { ClaimRemover } from "./claim-remover.ts";
import { pause } from "./clock.ts";
import { DiskMaintenance } from "./disk-maintenance.ts";
import { type HttpServer, startHttpServer } from "./http/http-server.ts";
import { Metrics } from "./http/metrics.ts";
import { ImagePrefetcher } from "./images/image-prefetcher.ts";
import type { ImageRecords } from "./images/image-records.ts";
import { otherNodes } from "./images/other-nodes.ts";
import type { Journal } from "./journal/journal.ts";
import { AssignmentReader } from "./link/assignment-reader.ts";
import { CoordinatorLink } from "./link/coordinator-link.ts";
import type { SessionServer } from "./link/session-server.ts";
import type { TokenFiles } from "./link/token-files.ts";
import { linkEvents } from "./link-events.ts";
import { PodMeter } from "./metrics/pod-meter.ts";
import type { NodeLogs } from "./node-logs.ts";
import { NodeReporter } from "./node-reporter.ts";
import { openSessions } from "./open-sessions.ts";
import { type OpenedState, openState } from "./open-state.ts";
import { FAULT_BACK_OFF, IMAGE_BACK_OFF } from "./pods/back-offs.ts";
import { PodSupervisor } from "./pods/pod-supervisor.ts";
import type { RecordedPod } from "./pods/supervisor-options.ts";
import { recordedPods } from "./recorded-pods.ts";
import { writeStates } from "./reset-after-reboot.ts";
import { watchNetworks } from "./service-network.ts";
import { StateSaver } from "./state-saver.ts";
import { supervisorEvents } from "./supervisor-events.ts";
import { checksText } from "./support/checks-text.ts";
import type { SupportSources } from "./support/support-files.ts";
import type { PodVolumes } from "./volumes/volumes.ts";

// A container that ran this long resets its back-off, as in Kubernetes.
const GOOD_RUN_MS = 600_000;
// More concurrent starts gain nothing on small hosts: 20 starts took 2.9 s at 8 at a time and 3.2 s at 2.
const STARTS_AT_ONCE = 8;
const REMOVALS_AT_ONCE = 8;
const REPAIR_INTERVAL_MS = 60_000;
// Shorter than the time after which the coordinator counts a node as unreachable. Without containerd there is nothing
// to adopt.
const TAKE_OVER_MAX_MS = 5_000;
// Below the time that systemd gives a unit to stop.
const CLOSE_MS = 10_000;

/** Connects all parts of the agent. Makes no decisions of its own. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #journal: Journal;
  readonly #capacity: HostCapacity;
  readonly #closing = new AbortController();
  readonly #tokens: TokenFiles;
  readonly #reader: AssignmentReader;
  readonly #saver: StateSaver;
  readonly #reporter: NodeReporter;
  readonly #volumes: PodVolumes;
  readonly #claimRemover: ClaimRemover;
  readonly #imageRecords: ImageRecords;
  readonly #diskUpkeep: DiskMaintenance;
  readonly #supervisor: PodSupervisor;
  readonly #prefetcher: ImagePrefetcher;
  readonly #logs: NodeLogs;
  readonly #sessions: SessionServer;
  readonly #meter: PodMeter;
  readonly #link: CoordinatorLink;
  readonly #metrics: Metrics;
  readonly #running: readonly Promise<void>[];
  #http: HttpServer | undefined;
  /** Resolves once everything on the host has been adopted, which may take as long as containerd is unavailable. */
  readonly ready: Promise<void>;
  readonly pods = (): ReturnType<PodSupervisor["statuses"]> => this.#supervisor.statuses();
  readonly retryStart = (podUid: string): void => this.#supervisor.retryStart(podUid);

  private constructor(options: AgentOptions, opened: OpenedState) {
    const { journal, capacity, imageRecords, tokens } = opened;
    this.#options = options;
    this.#journal = journal;
    this.#capacity = capacity;
    this.#imageRecords = imageRecords;
    const { clock, log, runtime, identity } = options;
    this.#tokens = tokens;
    this.#reader = new AssignmentReader(options.features, tokens, () => identity.authorityPem);
    this.#reader.keepOnly(journal.desired());
    this.#metrics = this.#makeMetrics();
    this.#saver = new StateSaver({
      ...{ journal, clock, onError: (err) => this.#notWritten(err) },
      onHealth: (problem) => this.#reporter.impaired("states", problem),
    });
    this.#reporter = this.#makeReporter();
    this.#logs = options.makeLogs({
      supervisor: () => this.#supervisor,
      diskIsFull: () => capacity.report().diskPressure.pressure,
    });
    this.#volumes = options.makeVolumes({
      exceeded: ({ podUid, message }) => {
        log.warn({ event: "volume-exceeded", pod: podUid, reason: message });
        if (podUid !== undefined) this.#supervisor.evict(podUid, message);
      },
      warn: (event, fields) => log.warn({ event, ...fields }),
    });
    this.#claimRemover = this.#makeClaimRemover();
    this.#supervisor = this.#makeSupervisor();
    this.#prefetcher = new ImagePrefetcher({ clock, images: this.#supervisor.imageStore });
    this.#diskUpkeep = new DiskMaintenance({
      ...{ clock, runtime, log, limits: options.config.images, records: imageRecords },
      supervisor: this.#supervisor,
      prefetchStatus: () => this.#prefetcher.desired(),
    });
    this.#sessions = openSessions({
      ...{ config: options.config, ownCommand: options.ownCommand, runtime, logs: this.#logs },
      ...{ supervisor: this.#supervisor, reporter: this.#reporter, records: imageRecords },
      ...{ signal: this.#closing.signal, support: () => this.#supportSources() },
    });
    this.#meter = new PodMeter({
      ...{ clock, scrape: options.scrape, pods: this.#supervisor },
      usage: (containerId) => runtime.usage(containerId),
    });
    this.#link = this.#makeLink();
    options.damageReports.subscribe(() => this.#link.nodeChanged());
    capacity.onChange(() => {
      this.#link.nodeChanged();
      this.#logs.diskChanged();
    });
    log.info({ event: "journal-loaded", pods: journal.desired().size, revision: String(journal.revision) });
    // The gateway does not need containerd.
    options.gateway.start();
    // The hello contains all these pods, so they must be known before it is sent.
    this.ready = this.#adopt(recordedPods(journal, this.#reader));
    const { signal } = this.#closing;
    this.#running = [
      this.#linkOnceTakenOver(signal),
      this.#reporter.run(signal),
      options.devices.watch(clock, signal, () => this.#link.nodeChanged()),
      this.ready.then(() => options.reserve.keep(signal)),
      writeStates(opened.unwritten, clock, signal, (problem) => this.#reporter.impaired("boot", problem)),
      watchNetworks(options.services, clock, () => this.#link.nodeChanged(), signal),
      this.ready.then(() => options.services.start()),
      this.ready.then(() => this.#claimRemover.run(signal)),
      this.ready.then(() => this.#diskUpkeep.run(signal)),
    ];
  }

  static async start(options: AgentOptions): Promise<Agent> {
    const agent = new Agent(options, await openState(options));
    const { listen } = options.config.http;
    if (listen) {
      agent.#http = await startHttpServer({
        ...{ listen, problems: () => agent.problems(), metrics: agent.#metrics },
        isRefused: () => agent.#link.state.code === "REFUSED",
        gatewayMetrics: () => options.gateway.metrics(),
      });
    }
    return agent;
  }

  /** Returns the problems; empty if everything works. */
  problems(): readonly string[] {
    const { kind, message } = this.#link.state;
    return [
      ...this.#reporter.problems(),
      ...this.#options.services.problems(),
      ...(kind === "connected" ? [] : [`coordinator: ${message ?? kind}`]),
    ];
  }

  /** Stops the agent. Containers keep running. */
  async close(): Promise<void> {
    const { network, runtime, services, gateway } = this.#options;
    this.#closing.abort();
    this.#sessions.close();
    this.#prefetcher.close();
    this.#capacity.close();
    await Promise.all([this.#supervisor.close(), this.#http?.close(), this.#meter.close(), ...this.#running]);
    await this.#diskUpkeep.close();
    await gateway.close();
    await services.close();
    await Promise.all([network.close(), runtime.close(), this.#volumes.close(), this.#logs.close()]);
    await Promise.all([this.#saver.close(), this.#tokens.close()]);
    await this.#journal.close();
  }

  async #adopt(recorded: readonly RecordedPod[]): Promise<void> {
    await this.#logs.adopt();
    await this.#supervisor.start(recorded);
  }

  /** Connects after containers were adopted, so that every pod that is reported as unready has been checked. */
  async #linkOnceTakenOver(signal: AbortSignal): Promise<void> {
    const timeUp = new AbortController();
    const either = AbortSignal.any([signal, timeUp.signal]);
    await Promise.race([this.ready, pause(this.#options.clock, TAKE_OVER_MAX_MS, either)]);
    timeUp.abort();
    await this.#link.run(signal);
  }

  #makeSupervisor(): PodSupervisor {
    const { config, clock, random, runtime, network, networkFiles, devices, probe, addresses, log } =
      this.#options;
    const { backOffBaseSeconds, backOffCapSeconds } = config.restart;
    return new PodSupervisor({
      instance: config.instance,
      ...{ clock, random, runtime, network, networkFiles, devices },
      volumes: this.#volumes,
      files: this.#logs.files,
      probe,
      host: {
        nodeName: config.nodeName,
        addresses,
        allocatable: () => this.#capacity.report().allocatable,
        diskPressure: () => {
          const { pressure, message } = this.#capacity.report().diskPressure;
          return pressure ? message : undefined;
        },
        separateStreams: config.logs.streams === "separate",
      },
      events: supervisorEvents({
        ...{ log, saver: this.#saver, outbox: this.#options.outbox, reporter: this.#reporter },
        noteDamage: this.#options.damageReports.note,
        stateFile: (podUid) => this.#journal.stateFile(podUid),
        stepped: (...step) => this.#metrics.stepped(...step),
        changed: (podUid) => {
          this.#logs.containers.podChanged(podUid);
          this.#sessions.podChanged(podUid);
          this.#diskUpkeep.podChanged();
        },
      }),
      imageAccess: this.#imageRecords,
      otherNodes: otherNodes({ ...{ config: config.images, clock }, client: () => this.#link.client }),
      imageChanged: (reference) => this.#prefetcher.changed(reference),
      imagesChanged: () => this.#reporter.imagesChanged(),
      limits: {
        startsAtOnce: STARTS_AT_ONCE,
        removalsAtOnce: REMOVALS_AT_ONCE,
        restart: {
          baseMs: backOffBaseSeconds * 1000,
          capMs: backOffCapSeconds * 1000,
          goodRunMs: GOOD_RUN_MS,
        },
        image: IMAGE_BACK_OFF,
        fault: FAULT_BACK_OFF,
        repairIntervalMs: REPAIR_INTERVAL_MS,
        closeMs: CLOSE_MS,
      },
    });
  }

  #makeReporter(): NodeReporter {
    const { config, clock, runtime, addresses, features, devices, damageReports } = this.#options;
    return new NodeReporter({
      clock,
      runtime,
      capacity: this.#capacity,
      usage: this.#options.hostUsage,
      labels: config.labels,
      addresses,
      networks: () => this.#options.services.networks(),
      features,
      devices: () => devices.amounts(),
      claims: () => this.#volumes.claims(),
      podCount: () => this.#supervisor.statuses().length,
      damage: () => damageReports.summary(),
      onChange: () => this.#link.nodeChanged(),
    });
  }

  #makeClaimRemover(): ClaimRemover {
    const { clock, log } = this.#options;
    return new ClaimRemover({
      clock,
      volumes: this.#volumes,
      removed: (claim) => {
        log.info({ event: "claim-removed", ...claim });
        this.#reporter.checkClaims();
        this.#link.claimRemoved(claim);
      },
      failed: (claim, err) => log.warn({ event: "claim-not-removed", ...claim, err }),
    });
  }

  #makeLink(): CoordinatorLink {
    const { version, sessionId, clock, random, services, gateway, outbox } = this.#options;
    const { coordinators, identity: files, mayJoin, openClient, log } = this.#options;
    const { nodeName, joinTokenFile: tokenFile } = this.#options.config;
    return new CoordinatorLink({
      enroll: coordinators.with({ nodeName, tokenFile, files, mayJoin }),
      coordinators,
      agentVersion: version,
      bootId: this.#capacity.bootId,
      journal: this.#journal,
      pods: this.#supervisor,
      reader: this.#reader,
      node: this.#reporter,
      meter: this.#meter,
      prefetcher: this.#prefetcher,
      ...{ clock, random, services, gateway, sessionId, outbox },
      ...(openClient !== undefined && { openClient }),
      removeClaims: (claims) => this.#claimRemover.remove(claims),
      openSession: (request, { client }) => this.#sessions.open(request, client),
      assignmentsHealth: (problem) => this.#assignmentsHealth(problem),
      events: linkEvents(log),
    });
  }

  #supportSources(): SupportSources {
    const { config, version, recentLog, clock } = this.#options;
    return {
      ...{ config, version, recentLog, clock, checks: checksText, problems: () => this.problems() },
      ...{ link: () => this.#link.state, assignmentRevision: () => this.#journal.revision },
      metrics: () => this.#metrics.render(),
    };
  }

  #makeMetrics(): Metrics {
    const { clock, config, hostReader, runtime, gateway } = this.#options;
    return new Metrics({
      gatewayReady: () => gateway.status()?.ready,
      statuses: () => this.#supervisor.statuses(),
      usage: (containerId) => runtime.usage(containerId),
      link: () => this.#link.state,
      assignmentRevision: () => this.#journal.revision,
      sessions: () => this.#sessions.count,
      disk: async () => (await hostReader.measure(config.dataDir)).disk,
      nowMs: () => clock.nowMs(),
    });
  }

  #assignmentsHealth(problem: string | undefined): void {
    if (problem !== undefined) this.#notWritten(problem);
    this.#reporter.impaired("assignments", problem);
  }

  #notWritten(err: unknown): void {
    this.#metrics.journalWriteFailed();
    this.#options.log.error({ event: "journal-not-written", err });
  }
}
