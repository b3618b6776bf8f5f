import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { familyOf } from "@forage/common/ip";
import type { Log } from "@forage/common/log";
import { RecentLines } from "@forage/common/recent-lines";
import { ServiceManager } from "@forage/common/service-manager";
import { pinsOf } from "@forage/identity";
import { LogDestination } from "@forage/identity/log-destination";
import { pino } from "pino";
import { Agent } from "./agent.ts";
import { hostReader } from "./capacity/read-host.ts";
import { systemClock } from "./clock.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { DamageReports, type NoteDamage } from "./damage-reports.ts";
import { openRelay } from "./destination/open-relay.ts";
import { HostDevices } from "./devices/host-devices.ts";
import type { DriverSocket } from "./driver/driver-socket.ts";
import type { HostGateway } from "./gateway/host-gateway.ts";
import { openGateway } from "./gateway/open-gateway.ts";
import { readHostFeatures } from "./host-features.ts";
import { hostOptions } from "./host-options.ts";
import { HostClaim, HostConflict, networkNamespace } from "./host-sharing/host-claim.ts";
import { holdDataDirectory } from "./instance-lock.ts";
import type { JournalKey } from "./journal/journal-key.ts";
import { CoordinatorAddresses } from "./link/coordinator-addresses.ts";
import { KnownCoordinators } from "./link/known-coordinators.ts";
import { IdentityFiles } from "./link/node-identity.ts";
import { HostNetwork } from "./network/host-network.ts";
import { HostNetworkFiles } from "./network/network-files.ts";
import { parsePodCidr, parsePodCidr6 } from "./network/pod-cidr.ts";
import { probePort } from "./network/probe-port.ts";
import { runCommand } from "./network/run-command.ts";
import { openKey } from "./open-key.ts";
import { ownAddresses } from "./own-address.ts";
import { podAccess } from "./pod-access-settings.ts";
import { probeOver } from "./probes/run-probe.ts";
import { writeRegistries } from "./registries/write-registries.ts";
import { HelperWatch } from "./runtime/nerdctl/helper-watch.ts";
import { NerdctlRuntime } from "./runtime/nerdctl/nerdctl-runtime.ts";
import { HostServiceNetwork } from "./service-network.ts";
import { COPY_FILES, copyFiles } from "./sessions/copy-files.ts";
import { SERVE_SFTP, serveSftp } from "./sessions/sftp/serve-sftp.ts";
import { HostVolumes } from "./volumes/host-volumes.ts";
import type { OpenedWorkspaces } from "./workspaces/open-workspaces.ts";

const VERSION = "0.1.0";
/** The same for all agents of the host, whatever their data directories are. */
const AGENTS_DIRECTORY = "/run/forage/agents";
// A restart doesn't fix a bad configuration.
const EXIT_CONFIG = 2;
const EXIT_FAILED = 1;
// Everything important is on disk, so aborting a stop is better than hanging.
const STOP_TIMEOUT_MS = 15_000;
// The number of characters kept for support bundles. The systemd journal has more.
const RECENT_LOG_LENGTH = 512 * 1024;

async function main(): Promise<void> {
  if (process.argv[2] === COPY_FILES) {
    process.exitCode = await copyFiles(process.argv.slice(3));
    return;
  }
  if (process.argv[2] === SERVE_SFTP) {
    process.exitCode = await serveSftp(process.argv.slice(3));
    return;
  }
  const config = await readConfig(process.argv.slice(2), process.env, hostname());
  const recentLog = new RecentLines(RECENT_LOG_LENGTH);
  const log = pino({ level: config.logLevel, base: { program: "agent" } }, LogDestination.keeping(recentLog));
  logWarnings(log);
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
  await holdDataDirectory(config.dataDir);
  const claim = await claimHost(config);
  const damageReports = new DamageReports({ dataDir: config.dataDir, log });
  const opened = await openKey({
    ...{ dataDir: config.dataDir, keyFile: journalKeyFile(), clock: systemClock },
    ...{ log, noteDamage: damageReports.note },
  });
  const { journalKey } = opened;
  const addresses = await findAddresses(config);
  const coordinators = await openCoordinators(config, log);
  const services = await openServices(config, addresses, log, damageReports.note);
  const helpers = await watchHelpers(config, log, damageReports);
  const runtime = await makeRuntime(config, log);
  const workspaces = await openNodeWorkspaces(config, coordinators, { log, damageReports, journalKey });
  const providers = new Map(workspaces === undefined ? [] : [["workspace", workspaces.provider]]);
  const given = { config: withWorkspacesLabel(config), clock: systemClock, random: Math.random, log };
  const agent = await Agent.start({
    ...{ ...hostOptions(given), ...given },
    version: VERSION,
    sessionId: randomUUID(),
    ...opened,
    runtime,
    network: makeNetwork(config, log, damageReports.note),
    networkFiles: new HostNetworkFiles({
      podsDir: join(config.dataDir, "pods"),
      cluster: {
        domain: config.clusterDomain,
        servers: config.dns ? [parsePodCidr(config.podCidr).gateway] : [],
      },
    }),
    services,
    gateway: await openNodeGateway(config, services, runtime, { log, damageReports, journalKey }),
    devices: new HostDevices({
      ...{ pool: config.devices, directory: join(config.dataDir, "devices") },
      noteDamage: damageReports.note,
    }),
    makeVolumes: (events) =>
      new HostVolumes({
        ...{ directory: join(config.dataDir, "volumes"), clock: systemClock, events, providers },
        noteDamage: damageReports.note,
      }),
    probe: probeOver(systemClock),
    hostReader,
    features: await readHostFeatures(config),
    addresses,
    ...{ recentLog, damageReports },
    ...{ coordinators, mayJoin: (authority: string) => claim.joins(authority) },
    ownCommand: [process.execPath, process.argv[1] ?? ""],
  });
  workspaces?.start(agent);
  const relay = openDestination(config, coordinators, agent, log);
  const nomad = await openNomadDriver(config, log);
  const close = async (): Promise<void> => {
    const parts = [relay, nomad, workspaces, agent, helpers];
    await Promise.all(parts.map((part) => part?.close()));
    await claim.close();
  };
  const manager = new ServiceManager({
    ...{ environment: process.env, pid: process.pid, clock: systemClock },
    status: () => statusText(agent.pods().length, agent.problems()),
  });
  stopOnSignal({ close }, manager, log);
  log.info({ event: "agent-started", node: config.nodeName, version: VERSION, pid: process.pid });
  // Ready means that the agent supervises its pods. If containerd is absent, that is reported, and the agent waits for
  // it.
  manager.ready();
}

function watchHelpers(config: Config, log: Log, damageReports: DamageReports): Promise<HelperWatch> {
  return HelperWatch.start({
    ...{ dir: programDir(config), ociRuntimes: Object.values(config.runtimeClasses), clock: systemClock },
    noteDamage: damageReports.note,
    onError: (err) => log.warn({ event: "helper-programs-not-restored", err }),
  });
}

/** Exits the process if another agent on the host conflicts. */
async function claimHost({ dataDir, instance, nodeName }: Config): Promise<HostClaim> {
  const identity = new IdentityFiles(join(dataDir, "identity"));
  await identity.loadAuthority();
  try {
    return await HostClaim.acquire({
      directory: AGENTS_DIRECTORY,
      namespace: await networkNamespace(),
      agent: { instance, nodeName, dataDir, pid: process.pid, authorities: pinsIn(identity.authorityPem) },
      clock: systemClock,
    });
  } catch (error) {
    if (error instanceof HostConflict) throw new ConfigError(error.message, { cause: error });
    throw error;
  }
}

/** Returns the pins of a bundle's certificates. Empty if the bundle is missing or damaged. */
function pinsIn(bundlePem: string | undefined): readonly string[] {
  try {
    return pinsOf(bundlePem ?? "");
  } catch {
    return [];
  }
}

/** Opens the Nomad driver. Loads its code only if the driver is configured. */
async function openNomadDriver(config: Config, log: Log): Promise<DriverSocket | undefined> {
  const { containerd, nerdctl, cniBinDir, dataDir, runDir, nomad } = config;
  if (nomad.socket === undefined) return undefined;
  const { DriverSocket } = await import("./driver/driver-socket.ts");
  return await DriverSocket.open({
    path: nomad.socket,
    places: {
      containerdAddress: containerd.address,
      ...{ nerdctl, cniBinDir },
      dataDir: join(dataDir, "nomad"),
      runDir: join(runDir, "nomad"),
    },
    version: VERSION,
    clock: systemClock,
    log: (level, event, fields = {}) => log[level]({ event, ...fields }),
  });
}

/** Returns the configured coordinators and those that were reported before. */
async function openCoordinators(
  { dataDir, coordinator, coordinators }: Config,
  log: Log,
): Promise<CoordinatorAddresses> {
  const known = await KnownCoordinators.open({
    path: join(dataDir, "coordinators"),
    onProblem: (err) => log.warn({ event: "coordinators-not-saved", err }),
  });
  return new CoordinatorAddresses({ configured: [coordinator, ...coordinators], known, random: Math.random });
}

interface NodeWorkspacesOptions {
  readonly log: Log;
  readonly damageReports: DamageReports;
  readonly journalKey: JournalKey;
}

/** Opens the node's part of workspaces. Loads its code only if workspaces are configured. */
async function openNodeWorkspaces(
  { dataDir, workspaces }: Config,
  coordinators: CoordinatorAddresses,
  { log, damageReports, journalKey }: NodeWorkspacesOptions,
): Promise<OpenedWorkspaces | undefined> {
  if (!workspaces.enabled) return undefined;
  const { openWorkspaces } = await import("./workspaces/open-workspaces.ts");
  return await openWorkspaces({
    ...{ dataDir, coordinators, log },
    identity: new IdentityFiles(join(dataDir, "identity")),
    key: journalKey,
    noteDamage: damageReports.note,
    clock: systemClock,
    random: Math.random,
  });
}

/** Adds the label by which the coordinator finds nodes that hold the content of workspaces. */
function withWorkspacesLabel(config: Config): Config {
  if (!config.workspaces.enabled) return config;
  return { ...config, labels: { ...config.labels, "forage.dev/workspaces": "true" } };
}

function openDestination(config: Config, coordinators: CoordinatorAddresses, agent: Agent, log: Log) {
  const { dataDir, podCidr, podCidr6, nodeName } = config;
  const { port } = config.destination;
  if (port === undefined) return undefined;
  const bridges = [parsePodCidr(podCidr), ...(podCidr6 === undefined ? [] : [parsePodCidr6(podCidr6)])];
  return openRelay({
    port,
    addresses: ["127.0.0.1", ...bridges.map(({ gateway }) => gateway)],
    identity: new IdentityFiles(join(dataDir, "identity")),
    pods: agent.pods,
    clock: systemClock,
    random: Math.random,
    onProblem: (event, err) => log.warn({ event, err }),
    ...{ coordinators, nodeName },
  });
}

function findAddresses({ coordinator, advertiseAddress, advertiseAddress6, podCidr6 }: Config) {
  return ownAddresses({
    coordinator: coordinator.host,
    advertised: advertiseAddress,
    advertised6: advertiseAddress6,
    podCidr6: podCidr6 === undefined ? undefined : parsePodCidr6(podCidr6),
  });
}

/** Returns the path of a credential. systemd stores a unit's LoadCredential= files in a separate directory. */
function credential(directory: string | undefined, name: string): string | undefined {
  return directory === undefined ? undefined : join(directory, name);
}

function programDir({ dataDir }: Config): string {
  return join(dataDir, "programs");
}

async function makeRuntime(config: Config, log: Log): Promise<NerdctlRuntime> {
  const registryHostsDirs = await writeRegistries(
    join(config.runDir, "registries"),
    config.registries,
    (registry, err) => log.error({ event: "registry-unusable", registry, err }),
  );
  return new NerdctlRuntime({
    ...(registryHostsDirs !== undefined && { registryHostsDirs }),
    nerdctlPath: config.nerdctl,
    address: config.containerd.address,
    namespace: config.containerd.namespace,
    stateDir: join(config.runDir, "nerdctl"),
    programDir: programDir(config),
    volumeDir: join(config.dataDir, "image-volumes"),
    cniBinDir: config.cniBinDir,
    cniConfigDir: join(config.runDir, "cni"),
    instance: config.instance,
    clock: systemClock,
    onShimEnded: (container, pid) => log.info({ event: "unused-shim-ended", container, pid }),
  });
}

function makeNetwork(config: Config, log: Log, noteDamage: NoteDamage): HostNetwork {
  return new HostNetwork(
    {
      instance: config.instance,
      dataDir: join(config.dataDir, "network"),
      podCidr: config.podCidr,
      podCidr6: config.podCidr6,
      hostPorts: config.hostPortRange,
      access: podAccess(config),
      cniDirectory: config.cniBinDir,
      poolSize: config.preparedSandboxes,
    },
    { clock: systemClock, random: Math.random, run: runCommand, probePort, log, noteDamage },
  );
}

function openServices(
  config: Config,
  addresses: readonly string[],
  log: Log,
  noteDamage: NoteDamage,
): Promise<HostServiceNetwork> {
  const { dataDir, instance, podCidr, podCidr6, nodeName, clusterDomain, dns } = config;
  return HostServiceNetwork.open({
    ...{ dataDir, instance, podCidr, podCidr6, nodeName, clusterDomain, dns },
    servesDestination: config.destination.port !== undefined,
    reach: addresses.map(familyOf),
    random: Math.random,
    clock: systemClock,
    run: runCommand,
    balancerInterface: config.loadBalancer.interface,
    hostInterfaces: networkInterfaces,
    onEvent: (event, fields) => log.info({ event, ...fields }),
    onProblem: (event, err) => log.warn({ event, err }),
    noteDamage,
  });
}

async function openNodeGateway(
  config: Config,
  services: HostServiceNetwork,
  runtime: NerdctlRuntime,
  { log, damageReports, journalKey }: NodeWorkspacesOptions,
): Promise<HostGateway> {
  const { dataDir, runDir, nodeName, instance, gateway: settings } = config;
  return openGateway({
    ...{ dataDir, runDir, nodeName, instance, settings },
    key: journalKey,
    services: services.known,
    runtime,
    run: runCommand,
    clock: systemClock,
    onEvent: (event, fields) => log.info({ event, ...fields }),
    noteDamage: damageReports.note,
  });
}

function journalKeyFile(): string | undefined {
  return credential(process.env.CREDENTIALS_DIRECTORY, "journal-key");
}

/**
 * Logs Node's warnings as entries. One of them is caused by every TLS connection to an address without a name; it is
 * ignored.
 */
function logWarnings(log: Log): void {
  process.removeAllListeners("warning");
  process.on("warning", (err) => {
    if (!("code" in err && err.code === "DEP0123")) log.warn({ event: "process-warning", err });
  });
}

function statusText(pods: number, problems: readonly string[]): string {
  return [`${pods} pods`, ...problems].join("; ");
}

function stopOnSignal(agent: Pick<Agent, "close">, manager: ServiceManager, log: Log): void {
  const stop = (signal: NodeJS.Signals) => {
    log.info({ event: "agent-stopping", signal });
    manager.stopping();
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref();
    agent.close().then(
      () => process.exit(0),
      (err) => {
        log.error({ event: "agent-stop-failed", err });
        process.exit(EXIT_FAILED);
      },
    );
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

main().catch((error: unknown) => {
  const known = error instanceof ConfigError;
  const text = known ? error.message : (error instanceof Error && error.stack) || String(error);
  process.stderr.write(`forage-agent: ${text}\n`);
  process.exit(known ? EXIT_CONFIG : EXIT_FAILED);
});
