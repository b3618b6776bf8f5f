import { normalizeImage, registryName } from "../../runtime/image-reference.ts";
import { decodeConfig, refuseProblems } from "./decode-config.ts";
import type { TaskPolicy } from "./driver-options.ts";
import { orderMounts, parseTmpfs, parseVolume, readMount } from "./parse-mounts.ts";
import {
  oneOf,
  parseAbsolutePath,
  parseDevice,
  parseDuration,
  parseExtraHost,
  parseHostName,
  parseIp,
} from "./parse-values.ts";
import { readLimits } from "./read-task-limits.ts";
import { readSecurity } from "./read-task-security.ts";
import { Section, shown } from "./section.ts";
import type { RegistryAuth, TaskDevice, TaskDns, TaskMount, TaskOptions } from "./task-options.ts";
import { TASK_SCHEMA } from "./task-schema.ts";

const PATH = "config";
const PORT_LABEL = /^[A-Za-z0-9_-]{1,57}$/;
const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/;
const LABEL_VALUE_MAX_CHARACTERS = 4_096;
/** Labels that the driver, nerdctl and containerd write. */
const RESERVED_LABEL = /^(forage\.dev|nerdctl|containerd\.io|io\.containerd|io\.nomad)[./]/;

/** Decodes and validates a job's `config` block. Throws INVALID with the path of every invalid option. */
export function readTaskOptions(msgpack: Uint8Array, policy: TaskPolicy): TaskOptions {
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
  checkHostIpc(section, options);
  section.section("logging", TASK_SCHEMA)?.parsed("driver", oneOf(["nomad"]));
  refuseProblems(problems);
  return options;
}

/** Rejects settings of an IPC namespace for a task that shares the host's. */
function checkHostIpc(section: Section, { hostNamespaces, sysctl, shmSizeBytes }: TaskOptions): void {
  if (!hostNamespaces.includes("ipc")) return;
  if (shmSizeBytes !== undefined)
    section.problem("shm_size", "the task has the host's /dev/shm with ipc_mode host");
  for (const name of Object.keys(sysctl))
    if (!name.startsWith("net."))
      section.problem(`sysctl.${shown(name)}`, "the parameter is the host's with ipc_mode host");
}

function readImage(section: Section, policy: TaskPolicy) {
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
    tty: section.flag("tty", false),
  };
}

function readMounts(section: Section, { volumes }: TaskPolicy): readonly TaskMount[] {
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

function readDevices(section: Section, { allowDevices }: TaskPolicy): readonly TaskDevice[] {
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
  // A word of resolv.conf. Whitespace would start another line or option.
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
