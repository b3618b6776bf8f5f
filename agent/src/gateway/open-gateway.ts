import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { NoteDamage } from "../damage-reports.ts";
import type { JournalKey } from "../journal/journal-key.ts";
import type { RunCommand } from "../network/run-command.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { KnownServices } from "../services/known-services.ts";
import type { GatewaySettings } from "../settings.ts";
import { ChosenLauncher } from "./chosen-launcher.ts";
import { ConfigFiles } from "./config-files.ts";
import { EnvoyPaths } from "./envoy/envoy-paths.ts";
import { EnvoyAdminSocket } from "./envoy-admin.ts";
import { EnvoyProxy, type Launcher } from "./envoy-proxy.ts";
import { HostGateway } from "./host-gateway.ts";
import { KnownGateway, type KnownGatewayOptions } from "./known-gateway.ts";
import { ContainerLauncher } from "./launch-container.ts";
import { ProgramLauncher } from "./launch-program.ts";

export interface OpenGatewayOptions {
  readonly settings: GatewaySettings;
  readonly dataDir: string;
  /** A directory on tmpfs, so that the certificates' keys disappear when the host loses power. */
  readonly runDir: string;
  readonly nodeName: string;
  readonly instance: string;
  readonly key: JournalKey;
  readonly services: Pick<KnownServices, "services" | "subscribe" | "loaded">;
  readonly run: RunCommand;
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly onEvent: (event: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly noteDamage: NoteDamage;
}

const DAMAGE_REMEDY = "the gateway keeps the configuration it has until the coordinator sends it again";

/** The default paths of Envoy. The first is reserved for operators. */
const PROGRAMS = ["/usr/lib/forage/envoy", "/usr/bin/envoy", "/usr/local/bin/envoy"];

/** Opens the gateway of a Linux host with its stored configuration. */
export async function openGateway(options: OpenGatewayOptions): Promise<HostGateway> {
  const { settings, dataDir, runDir, nodeName: node, instance, clock, onEvent, noteDamage } = options;
  const dir = join(dataDir, "gateway");
  const places = new EnvoyPaths(join(runDir, "gateway"));
  const onError = (err: unknown): void => onEvent("gateway-not-kept", { err });
  const known = await openKnownGateway({ dir, places, key: options.key, clock, onError, noteDamage });
  const launcher = launcherOf([dir, places.dir], options);
  const { bootstrap } = places;
  const proxy = new EnvoyProxy({ launcher, bootstrap, log: join(dir, "envoy.log"), clock });
  const { connectionsMax, memoryLimitBytes, trustedProxies } = settings;
  return new HostGateway({
    ...{ known, services: options.services, proxy, clock, onEvent },
    admin: new EnvoyAdminSocket(places.adminSocket),
    render: {
      ...{ places, node, trustedHops: trustedProxies, accessLog: join(dir, "access.log") },
      address: settings.address ?? anyAddress(),
      ports: { http: settings.httpPort, https: settings.httpsPort },
    },
    bootstrap: { places, node, instance, connectionsMax, memoryLimitBytes },
  });
}

export interface OpenKnownGatewayOptions extends Omit<KnownGatewayOptions, "onDamage"> {
  readonly places: EnvoyPaths;
  readonly noteDamage: NoteDamage;
}

/** Opens the stored configuration, and reports if it is damaged or lost. */
export async function openKnownGateway(options: OpenKnownGatewayOptions): Promise<KnownGateway> {
  const { places, noteDamage } = options;
  const onDamage = (path: string, reason: string): void => noteDamage(path, reason, DAMAGE_REMEDY);
  const known = await KnownGateway.open({ ...options, onDamage });
  if (known.loaded === "missing" && (await ConfigFiles.exist(places)))
    noteDamage(known.path, "it is missing although the gateway's files exist", DAMAGE_REMEDY);
  return known;
}

/** Returns the launcher. A program of the host takes precedence over an image. */
function launcherOf(
  directories: readonly string[],
  { settings, instance, run, runtime, clock }: OpenGatewayOptions,
): Launcher {
  const systemd = existsSync("/run/systemd/system");
  const ofProgram = (program: string): Launcher => new ProgramLauncher({ program, instance, run, systemd });
  const { envoy, image } = settings;
  if (envoy !== undefined) return ofProgram(envoy);
  const ofImage =
    image === undefined ? undefined : new ContainerLauncher({ image, instance, runtime, directories, clock });
  return new ChosenLauncher({ programs: PROGRAMS, ofProgram, ofImage });
}

/** Returns the wildcard address: the IPv6 one, which includes both families, if the kernel has IPv6. */
function anyAddress(): string {
  return existsSync("/proc/net/if_inet6") ? "::" : "0.0.0.0";
}
