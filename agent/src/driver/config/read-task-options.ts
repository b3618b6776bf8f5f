import { capabilityName } from "../../runtime/check-security.ts";
import { normalizeImage, registryName } from "../../runtime/image-reference.ts";
import { decodeConfig, refuseProblems } from "./decode-config.ts";
import type { DriverOptions } from "./driver-options.ts";
import { orderMounts, parseTmpfs, parseVolume, readMount } from "./parse-mounts.ts";
import {
  oneOf,
  parseAbsolutePath,
  parseDevice,
  parseDuration,
  parseExtraHost,
  parseHostName,
  parseIp,
  parseSize,
  parseUlimit,
} from "./parse-values.ts";
import { Section, shown } from "./section.ts";
import type {
  RegistryAuth,
  SeccompProfile,
  TaskDevice,
  TaskDns,
  TaskMount,
  TaskOptions,
} from "./task-options.ts";
import { TASK_SCHEMA } from "./task-schema.ts";

const PATH = "config";
/** Linux's largest process ID. */
const PIDS_MAX = 4_194_304;
const OOM_SCORE_MAX = 1_000;
/** runc accepts no larger IDs. */
const GROUP_ID_MAX = 2 ** 31 - 1;
const PORT_LABEL = /^[A-Za-z0-9_-]{1,57}$/;
const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/;
const LABEL_VALUE_MAX_CHARACTERS = 4_096;
/** Labels that the driver, nerdctl and containerd write. */
const RESERVED_LABEL = /^(forage\.dev|nerdctl|containerd\.io|io\.containerd|io\.nomad)[./]/;
/** Parameters that belong to a namespace of the task, and not to the whole host. */
const NAMESPACED_SYSCTL =
  /^(net\.[a-z0-9_./-]+|fs\.mqueue\.[a-z_]+|kernel\.(msg[a-z_]*|sem|shm[a-z_]*|domainname))$/i;

type Policy = Pick<
  DriverOptions,
  "allowPrivileged" | "allowCaps" | "allowDevices" | "allowRuntimes" | "volumes" | "imagePullTimeoutMs"
>;

/** Decodes and validates a job's `config` block. Throws INVALID that names every problem with its path. */
export function readTaskOptions(msgpack: Uint8Array, policy: Policy): TaskOptions {
  const problems: string[] = [];
  const section = new Section(PATH, decodeConfig(PATH, msgpack), TASK_SCHEMA, problems);
  const options: TaskOptions = {
    ...readImage(section, policy),
    ...readProcess(section),
    ...readSecurity(section, policy),
    mounts: readMounts(section, policy),
    devices: readDevices(section, policy),
    ...readNetwork(section),
    ...readLimits(section, policy),
    labels: readLabels(section),
  };
  refuseProblems(problems);
  return options;
}

function readImage(section: Section, policy: Policy) {
  const image = section.requiredText("image");
  if (image !== "") section.parsed("image", normalizeImage);
  const auth = readAuth(section);
  return {
    image,
    imagePullPolicy: section.parsed("image_pull_policy", oneOf(["missing", "always", "never"])) ?? "missing",
    imagePullTimeoutMs: section.parsed("image_pull_timeout", parseDuration) ?? policy.imagePullTimeoutMs,
    ...(auth !== undefined && { auth }),
  };
}

function readAuth(section: Section): RegistryAuth | undefined {
  const block = section.section("auth", TASK_SCHEMA);
  if (block === undefined) return undefined;
  const serverAddress = block.parsed("server_address", registryName);
  return {
    username: block.requiredText("username"),
    password: block.requiredText("password"),
    ...(serverAddress !== undefined && { serverAddress }),
  };
}

function readProcess(section: Section) {
  const command = section.text("command");
  const workDir = section.parsed("work_dir", parseAbsolutePath);
  return {
    entrypoint: section.texts("entrypoint"),
    ...(command !== undefined && { command }),
    args: section.texts("args"),
    ...(workDir !== undefined && { workDir }),
    init: section.flag("init", false),
  };
}

function readSecurity(section: Section, policy: Policy) {
  const capability = (text: string): string => {
    const name = capabilityName(text);
    return name === "ALL" ? name : `CAP_${name}`;
  };
  const allowed = (text: string): string => {
    const name = capability(text);
    if (policy.allowCaps.includes("ALL") || policy.allowCaps.includes(name)) return name;
    throw new Error(`${name} is not in the plugin's allow_caps`);
  };
  const runtime = section.parsed("runtime", (text) => {
    if (policy.allowRuntimes.includes(text)) return text;
    throw new Error(`${shown(text)} is not in the plugin's allow_runtimes`);
  });
  const privileged = section.flag("privileged", false);
  if (privileged && !policy.allowPrivileged)
    section.problem("privileged", "the plugin's allow_privileged is not set");
  const noNewPrivileges = section.flag("no_new_privileges", false);
  if (privileged && noNewPrivileges) section.problem("no_new_privileges", "excludes privileged");
  return {
    capAdd: section.parsedEach("cap_add", allowed),
    capDrop: section.parsedEach("cap_drop", capability),
    privileged,
    noNewPrivileges,
    readonlyRootfs: section.flag("readonly_rootfs", false),
    seccompProfile: readSeccomp(section, policy),
    groupAdd: section.parsedEach("group_add", parseGroupId),
    ...(runtime !== undefined && { runtime }),
  };
}

function readSeccomp(section: Section, policy: Policy): SeccompProfile {
  const profile = section.parsed("seccomp_profile", (text): SeccompProfile => {
    if (text === "default") return { type: "default" };
    if (text !== "unconfined") return { type: "file", path: parseAbsolutePath(text) };
    if (!policy.allowPrivileged) throw new Error("unconfined needs the plugin's allow_privileged");
    return { type: "unconfined" };
  });
  return profile ?? { type: "default" };
}

function parseGroupId(text: string): number {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : -1;
  if (id >= 0 && id <= GROUP_ID_MAX) return id;
  throw new Error(`must be a group ID from 0 to ${GROUP_ID_MAX}, and is ${shown(text)}`);
}

function readMounts(section: Section, { volumes }: Policy): readonly TaskMount[] {
  const mounts = [
    ...section.sections("mounts", TASK_SCHEMA).flatMap(readMount),
    ...section.parsedEach("volumes", parseVolume),
    ...section.parsedEach("tmpfs", parseTmpfs),
  ];
  for (const mount of mounts) {
    if (volumes.enabled || mount.type === "tmpfs" || (mount.type === "bind" && mount.sourceInTaskDir))
      continue;
    section.problem("mounts", `${shown(mount.source)} needs the plugin's volumes { enabled = true }`);
  }
  return orderMounts(mounts, (target) =>
    section.problem("mounts", `${shown(target)} is mounted more than once`),
  );
}

function readDevices(section: Section, { allowDevices }: Policy): readonly TaskDevice[] {
  return section.parsedEach("devices", (text) => {
    const device = parseDevice(text);
    const isAllowed = allowDevices.some(
      (it) => it === device.hostPath || (it.endsWith("/") && device.hostPath.startsWith(it)),
    );
    if (!isAllowed) throw new Error(`${shown(device.hostPath)} is not in the plugin's allow_devices`);
    return device;
  });
}

function readNetwork(section: Section) {
  const networkMode = section.parsed("network_mode", oneOf(["host", "none", "bridge"]));
  const ports = section.parsedEach("ports", (label) => {
    if (PORT_LABEL.test(label)) return label;
    throw new Error(`must be a port's label, and is ${shown(label)}`);
  });
  if (ports.length > 0 && networkMode !== undefined && networkMode !== "bridge")
    section.problem("ports", `have no meaning with network_mode ${networkMode}`);
  const hostname = section.parsed("hostname", parseHostName);
  const dns = readDns(section);
  return {
    ...(networkMode !== undefined && { networkMode }),
    ports,
    ...(hostname !== undefined && { hostname }),
    ...(dns !== undefined && { dns }),
    extraHosts: section.parsedEach("extra_hosts", parseExtraHost),
  };
}

function readDns(section: Section): TaskDns | undefined {
  const block = section.section("dns", TASK_SCHEMA);
  if (block === undefined) return undefined;
  // A word of resolv.conf: whitespace would begin another line or option.
  const word = (text: string): string => {
    if (/^[\x21-\x7e]{1,253}$/.test(text)) return text;
    throw new Error(`must be one word, and is ${shown(text)}`);
  };
  return {
    servers: block.parsedEach("servers", parseIp),
    searches: block.parsedEach("searches", word),
    options: block.parsedEach("options", word),
  };
}

function readLimits(section: Section, policy: Policy) {
  const shmSizeBytes = section.parsed("shm_size", parseSize);
  const pidsLimit = section.wholeNumber("pids_limit", 1, PIDS_MAX);
  const oomScoreAdj = section.wholeNumber("oom_score_adj", -OOM_SCORE_MAX, OOM_SCORE_MAX);
  if (oomScoreAdj !== undefined && oomScoreAdj < 0 && !policy.allowPrivileged)
    section.problem("oom_score_adj", "a value below 0 needs the plugin's allow_privileged");
  const sysctls = section.parsedMap("sysctl", (name, text) => {
    if (!NAMESPACED_SYSCTL.test(name))
      throw new Error("the parameter belongs to the whole host, not to the task");
    if (!/^[\x20-\x7e]{1,256}$/.test(text)) throw new Error("must be one line of text");
    return [name, text] as const;
  });
  return {
    sysctl: Object.fromEntries(sysctls),
    ulimits: section.parsedMap("ulimit", parseUlimit),
    ...(shmSizeBytes !== undefined && { shmSizeBytes }),
    ...(pidsLimit !== undefined && { pidsLimit }),
    cpuHardLimit: section.flag("cpu_hard_limit", false),
    ...(oomScoreAdj !== undefined && { oomScoreAdj }),
  };
}

function readLabels(section: Section): Readonly<Record<string, string>> {
  const labels = section.parsedMap("labels", (key, value) => {
    if (!LABEL_KEY.test(key)) throw new Error("is not a label's key");
    if (RESERVED_LABEL.test(key)) throw new Error("the prefix is reserved");
    if (value.length > LABEL_VALUE_MAX_CHARACTERS || !/^[^\p{Cc}]*$/u.test(value))
      throw new Error(`must be at most ${LABEL_VALUE_MAX_CHARACTERS} characters of one line`);
    return [key, value] as const;
  });
  return Object.fromEntries(labels);
}
