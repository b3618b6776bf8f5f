import { ActingTime } from "./acting-time/acting-time.ts";
import { addressRanges, virtualIpRanges } from "./address-ranges.ts";
import { hostPathLimitsIn } from "./api/namespaces/host-path-limits.ts";
import { NamespaceRules } from "./api/namespaces/namespace-rules.ts";
import { policyRefusalIn } from "./api/namespaces/stored-violations.ts";
import { PodUse } from "./api/operator/pod-use.ts";
import { NO_AUDIT_LOG } from "./audit/audit-log.ts";
import type { Authority, AuthorityRoot } from "./authority/authority.ts";
import type { CertificateController } from "./certificates/controller.ts";
import { openCertificates } from "./certificates/open-certificates.ts";
import { type Control, type ControlOptions, startControl } from "./control/control.ts";
import { MassLoss } from "./control/eviction/mass-loss.ts";
import { hasPodsToReplace } from "./control/eviction/pending-eviction.ts";
import { reportMassLoss } from "./control/eviction/report-mass-loss.ts";
import { rolloutLimits } from "./control/rollout/rollout-limits.ts";
import type { Core, CoreOptions } from "./core-options.ts";
import { openDirectory } from "./destination/open-directory.ts";
import { serviceFailure } from "./destination/service-failure.ts";
import { readyEndpointCount } from "./endpoints/endpoints.ts";
import { eventLimits } from "./events/configured-limits.ts";
import { recordChanges } from "./events/record-changes.ts";
import { EventStore } from "./events/recorder.ts";
import { ObjectFaults } from "./faults/object-faults.ts";
import { noCertificateSource } from "./gateway/certificate-source.ts";
import { problemText } from "./gateway/conditions.ts";
import { GatewayTable } from "./gateway/gateway-table.ts";
import { Assignments } from "./link/assignments.ts";
import { HistoryGuard } from "./link/history-guard.ts";
import { livenessStats } from "./link/liveness-stats.ts";
import { nodeLimits, rebalanceSchedule } from "./link/node-limits.ts";
import { Prefetches } from "./link/prefetches.ts";
import { RefusalLog } from "./link/refusal-log.ts";
import { SessionBroker } from "./link/session-broker.ts";
import { Sessions } from "./link/sessions.ts";
import { StartGate } from "./link/start-gate.ts";
import { MetricsCollector } from "./metrics/metrics-collector.ts";
import { Planner } from "./plan/planner.ts";
import { TokenUses } from "./rpc/token-uses.ts";
import { ServiceTable } from "./service-network/service-table.ts";
import type { ServicesOptions } from "./services.ts";
import type { ClusterView } from "./state/cluster-view.ts";
import { openView } from "./state/open-view.ts";
import { Trials } from "./what-if/trials.ts";

export type { Core, CoreOptions } from "./core-options.ts";

const DAY_MS = 24 * 3600 * 1000;

/**
 * Starts everything that a coordinator does, without ports, files and its own clock. Simulations
 * run the same code.
 */
export async function startCore(given: CoreOptions): Promise<Core> {
  const { clock, log, config, randomName } = given;
  const events = await EventStore.open({ ...given, limits: eventLimits(config) });
  const secrets = () => given.authority.deriveSecrets("store history");
  const history = await HistoryGuard.open({ ...given, events, secrets });
  const time = new ActingTime({ clock, checkStall: () => sessions.checkStall() });
  const options = { ...given, store: time.tracked(history.guarded()) };
  const { store } = options;
  // Steps in progress wait until the view contains their writes, so the view must follow the store
  // until they have finished.
  const over = new AbortController();
  const { state, following } = await openView(options, events, over.signal);
  const { sessions, massLoss } = openSessions(options, { state, events, time });
  given.authorityRoll?.onChange(() => sessions.wakeAll());
  const broker = new SessionBroker({ sessions, clock, randomName });
  recordChanges(state, events, log);
  const metricsMs = config.autoscaling.intervalSeconds * 1000;
  const { usageOfAllPods } = given;
  const metrics = new MetricsCollector({ state, clock, intervalMs: metricsMs, usageOfAllPods });
  const { vault, defer, builtIn } = options;
  const certificates = await openCertificateController(options, events);
  const source = certificates ?? noCertificateSource();
  const gateways = new GatewayTable({ ...{ state, vault, source, events, clock, log, defer }, builtIn });
  const gate = new StartGate(state, log, given.view?.isProven);
  // Decisions must wait, and not only writes: a decision made before the nodes have connected would
  // treat every pod as unavailable.
  const started = Promise.all([given.started, gate.opened.catch(() => undefined)]).then(() => undefined);
  time.holdUntil(started);
  const deciding = { ...options, store: gate.gated(store), started };
  const namespaceRules = new NamespaceRules(state, options.foreignKinds);
  const controls = controlOptions(deciding, { state, metrics, events, gateways, namespaceRules });
  const assignments = new Assignments({
    ...{ state, vault: options.vault, issuer: options.issuer, clock, log },
    hostPathLimits: hostPathLimitsIn(state),
  });
  const prefetches = new Prefetches({
    clock,
    credentialsOf: ({ refs, name }) => assignments.logins(refs, name),
  });
  const checkStall = (): void => sessions.checkStall();
  const control = startControl({ ...controls, prefetcher: prefetches, massLoss, checkStall, time });
  history.onRefused((reason) => {
    gate.close(reason);
    sessions.wakeAll();
    void control.close();
    void certificates?.close();
  });
  const planner = openPlanner(options, state, { ...controls, started: given.started });
  return {
    ...{ store, state, events, control, time },
    services: servicesOptions(options, {
      state,
      sessions,
      broker,
      metrics,
      assignments,
      prefetches,
      control,
      planner,
      ...{ events, gateways, certificates, namespaceRules },
      history,
      gate,
    }),
    ...{ decides: () => gate.isOver && history.refusal === undefined, refusal: () => history.refusal },
    liveness: livenessStats(sessions, massLoss, clock),
    stopSessions: () => sessions.stop(),
    close: async () => {
      gate.close("the coordinator stops");
      await control.close();
      metrics.close();
      gateways.close();
      await certificates?.close();
      await events.close();
      over.abort();
      await following;
    },
  };
}

function openPlanner(
  { store, clock, randomName, defer }: CoreOptions,
  state: ClusterView,
  control: ControlOptions,
): Planner {
  const turn = (): Promise<void> => new Promise((resolve) => defer(resolve));
  return new Planner({ store, state, nowMs: clock.nowMs, control, apply: { randomName }, turn });
}

function openSessions(
  { clock, log, config }: CoreOptions,
  {
    state,
    events,
    time,
  }: { readonly state: ClusterView; readonly events: EventStore; readonly time: ActingTime },
): { readonly sessions: Sessions; readonly massLoss: MassLoss } {
  const { liveness, tolerations, recoveryMs } = nodeLimits(config);
  const massLoss = new MassLoss({ recoveryMs, onChange: reportMassLoss(events, log) });
  const sessions = new Sessions({
    state,
    clock,
    log,
    heartbeatIntervalMs: config.heartbeatIntervalSeconds * 1000,
    liveness,
    massLoss,
    onStall: (stalledMs) => time.recordStall(stalledMs),
    onPulse: () => time.tick(),
    hasPodsToReplace: (node) => hasPodsToReplace(state, node, clock.nowMs(), tolerations),
  });
  return { sessions, massLoss };
}

function controlOptions(
  { store, clock, log, config, randomName, started, foreignKinds }: CoreOptions,
  {
    state,
    metrics,
    events,
    gateways,
    namespaceRules,
  }: {
    readonly state: ClusterView;
    readonly metrics: MetricsCollector;
    readonly events: EventStore;
    readonly gateways: GatewayTable;
    readonly namespaceRules: NamespaceRules;
  },
): ControlOptions {
  return {
    store,
    state,
    clock,
    log,
    started,
    foreignKinds,
    randomName,
    profile: config.profile,
    metrics,
    events,
    limits: rolloutLimits(config),
    tolerations: nodeLimits(config).tolerations,
    rebalance: rebalanceSchedule(config),
    addresses: addressRanges(config),
    readyEndpoints: (namespace, service) => readyEndpointCount(state, namespace, service),
    serviceFailure: (namespace, service) => serviceFailure(state, namespace, service),
    policyRefusal: policyRefusalIn(state),
    runQuota: namespaceRules,
    routeProblem: (kind, namespace, name) =>
      problemText(gateways.statusOf(kind, namespace, name)?.conditions ?? []),
  };
}

function servicesOptions(
  options: CoreOptions,
  components: {
    readonly state: ClusterView;
    readonly sessions: Sessions;
    readonly broker: SessionBroker;
    readonly metrics: MetricsCollector;
    readonly assignments: Assignments;
    readonly prefetches: Prefetches;
    readonly control: Control;
    readonly planner: Planner;
    readonly events: EventStore;
    readonly gateways: GatewayTable;
    readonly certificates: CertificateController | undefined;
    readonly history: HistoryGuard;
    readonly gate: StartGate;
    readonly namespaceRules: NamespaceRules;
  },
): ServicesOptions {
  const { store, clock, log, authority, clusterId, epoch, vault } = options;
  const { randomName, randomBytes } = options;
  const { state, sessions, broker, metrics, control, planner, events, gateways } = components;
  const { nodePorts, loadBalancerIps } = addressRanges(options.config);
  const rollouts = control.rollouts;
  const { namespaceRules } = components;
  const { nowMs, schedule } = clock;
  const tokenUses = new TokenUses({ store, log, nowMs, schedule });
  return {
    forage: { store, state, clock, randomName, rollouts, nodePorts, loadBalancerIps, namespaceRules },
    operator: {
      ...{ namespaceRules, tokenUses },
      auditLog: options.audit ?? NO_AUDIT_LOG,
      store,
      state,
      clock,
      log,
      vault,
      unschedulable: control.unschedulable,
      rebalancing: control.rebalancing,
      recorder: events,
      ...{ rollouts, events, broker },
      podUse: new PodUse(),
      metrics,
      autoscale: control.autoscale,
      randomName,
      randomBytes,
      authorityPin: () => authority.pin,
      ...{ reachableAt: options.reachableAt ?? [], readKeyFiles: options.readKeyFiles },
      authorityRoll: options.authorityRoll,
      authorityRoots: () => options.authorityRoll?.roots() ?? [onlyRoot(authority)],
      certificateGraceMs: options.config.nodeCertificates.graceDays * DAY_MS,
      ...{ planner, trials: new Trials({ state, planner }) },
      nodePorts,
      loadBalancerIps,
      gateways,
      backups: options.backups?.directory,
      certificates: components.certificates,
      certificateRoot: options.certificateIssuer?.rootPem,
      explainPlacement: control.explainPlacement,
      rolloutView: (key) => rollouts.rolloutView(key),
    },
    connect: {
      ...{ store, state, sessions, metrics, clock, log, events, clusterId, epoch },
      assignments: components.assignments,
      services: serviceTableOf(state, options),
      gateways,
      prefetches: components.prefetches,
      history: components.history,
      gate: components.gate,
      authorityRoll: options.authorityRoll,
    },
    enroll: {
      store,
      state,
      clock,
      log,
      refusals: new RefusalLog(log, clock),
      history: components.history,
      authority,
      clusterId,
      lifetimeMs: options.config.nodeCertificates.lifetimeDays * DAY_MS,
    },
    enrollCoordinator: {
      ...options,
      events,
      history: components.history,
      refusals: new RefusalLog(log, clock),
    },
    destination: { directory: options.view?.directory ?? openDirectory(state, options), authorize: true },
    broker,
  };
}

/** Returns the single root of an authority that is not being replaced. */
function onlyRoot({ pin, certPem }: Authority): AuthorityRoot {
  return { pin, certPem, forServers: true, forNodes: true };
}

async function openCertificateController(
  { certificateIssuer: issuer, store, vault, clock, log, randomBytes }: CoreOptions,
  events: EventStore,
): Promise<CertificateController | undefined> {
  if (issuer === undefined) return undefined;
  // Returns a random number in [0, 1) from the same source as all others here.
  const random = (): number => Buffer.from(randomBytes(4)).readUInt32BE() / 2 ** 32;
  return openCertificates({ issuer, store, vault, events, clock, log, random });
}

function serviceTableOf(state: ClusterView, { config, defer, log, builtIn }: CoreOptions): ServiceTable {
  const ranges = virtualIpRanges(config);
  const faults = new ObjectFaults({ loop: "service-network", log });
  return new ServiceTable({
    ...{ state, domain: config.clusterDomain, virtualIpRanges: ranges, defer, faults, builtIn },
  });
}
