import { capabilityName } from "../../runtime/check-security.ts";
import { decodeConfig, refuseProblems } from "./decode-config.ts";
import { type DriverOptions, EXTRA_LABELS } from "./driver-options.ts";
import { DRIVER_SCHEMA } from "./driver-schema.ts";
import { oneOf, parseAbsolutePath, parseDuration } from "./parse-values.ts";
import { Section, shown } from "./section.ts";

const PATH = "plugin config";
const NAMESPACE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,75}$/;
const OCI_RUNTIME = /^(\/[^\s:]+|io\.containerd\.[a-z0-9.-]+)$/;
const MINUTE_MS = 60_000;
/** The capabilities that runc grants by default. */
export const DEFAULT_CAPS: readonly string[] =
  "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT MKNOD AUDIT_WRITE SETFCAP"
    .split(" ")
    .map((name) => `CAP_${name}`);

/** Decodes and validates the plugin's configuration. Throws INVALID with the path of every invalid option. */
export function readDriverOptions(msgpack: Uint8Array): DriverOptions {
  const problems: string[] = [];
  const section = new Section(PATH, decodeConfig(PATH, msgpack), DRIVER_SCHEMA, problems);
  const authConfigFile = section.parsed("auth_config", parseAbsolutePath);
  const options: DriverOptions = {
    enabled: section.flag("enabled", true),
    ...readPlaces(section),
    allowPrivileged: section.flag("allow_privileged", false),
    allowCaps: section.has("allow_caps") ? section.parsedEach("allow_caps", parseCapability) : DEFAULT_CAPS,
    allowDevices: section.parsedEach("allow_devices", parseAllowedDevice),
    allowRuntimes: section.parsedEach("allow_runtimes", parseRuntime),
    volumes: readVolumes(section),
    gc: readGc(section),
    imagePullTimeoutMs: section.parsed("image_pull_timeout", parseDuration) ?? 5 * MINUTE_MS,
    ...(authConfigFile !== undefined && { authConfigFile }),
    extraLabels: section.parsedEach("extra_labels", oneOf(EXTRA_LABELS)),
    disableLogCollection: section.flag("disable_log_collection", false),
  };
  refuseProblems(problems);
  return options;
}

function readPlaces(section: Section) {
  const path = (name: string, fallback: string): string =>
    section.parsed(name, parseAbsolutePath) ?? fallback;
  return {
    containerdAddress: path("containerd_address", "/run/containerd/containerd.sock"),
    containerdNamespace: section.parsed("containerd_namespace", parseNamespace) ?? "nomad",
    nerdctl: path("nerdctl", "/usr/lib/forage/nerdctl"),
    cniBinDir: path("cni_bin_dir", "/usr/lib/cni"),
    dataDir: path("data_dir", "/var/lib/forage/nomad"),
    runDir: path("run_dir", "/run/forage/nomad"),
  };
}

function readVolumes(section: Section): DriverOptions["volumes"] {
  return { enabled: section.section("volumes", DRIVER_SCHEMA)?.flag("enabled", false) ?? false };
}

function readGc(section: Section): DriverOptions["gc"] {
  const gc = section.section("gc", DRIVER_SCHEMA);
  return {
    container: gc?.flag("container", true) ?? true,
    image: gc?.flag("image", true) ?? true,
    imageDelayMs: gc?.parsed("image_delay", parseDuration) ?? 3 * MINUTE_MS,
  };
}

function parseNamespace(text: string): string {
  if (NAMESPACE.test(text)) return text;
  throw new Error(
    `must be a containerd namespace of letters, digits, ".", "_" and "-", and is ${shown(text)}`,
  );
}

function parseCapability(text: string): string {
  const name = capabilityName(text);
  return name === "ALL" ? name : `CAP_${name}`;
}

/** Parses the path of a device. A path that ends with a slash includes everything below it. */
function parseAllowedDevice(text: string): string {
  const path = parseAbsolutePath(text);
  return text.endsWith("/") && path !== "/" ? `${path}/` : path;
}

function parseRuntime(text: string): string {
  if (OCI_RUNTIME.test(text)) return text;
  throw new Error(
    `must be an absolute path or the name of a shim such as io.containerd.kata.v2, and is ${shown(text)}`,
  );
}
