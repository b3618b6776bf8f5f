import { type ContainerSpec, RuntimeError } from "./runtime.ts";

/** The capabilities of Linux, without the prefix CAP_. nerdctl and runc would ignore other names silently. */
const CAPABILITIES: ReadonlySet<string> = new Set(
  (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST " +
    "NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE " +
    "SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG " +
    "WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
  ).split(" "),
);

// The largest id that runc accepts.
const ID_MAX = 2 ** 31 - 1;

const USER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?$/;

/** Rejects settings that no runtime supports, before anything is created. Throws START_FAILED, not retryable. */
export function checkSecurity({ user, security }: Pick<ContainerSpec, "user" | "security">): void {
  for (const id of [user?.uid, user?.gid, ...(user?.supplementalGroups ?? [])]) {
    if (id !== undefined && !(Number.isInteger(id) && id >= 0 && id <= ID_MAX))
      throw refusal(`user or group ${id}: must be a whole number from 0 to ${ID_MAX}`);
  }
  if (user?.name !== undefined && !USER_NAME.test(user.name))
    throw refusal(
      `user ${JSON.stringify(user.name)}: must be a name or number, with an optional group: USER[:GROUP]`,
    );
  if (security === undefined) return;
  security.capabilities.add.map(capabilityName);
  security.capabilities.drop.map(capabilityName);
  if (security.privileged && !security.allowPrivilegeEscalation)
    throw refusal("a privileged container can't do without privilege escalation: drop one of the two");
  if (security.runAsNonRoot && user?.uid === 0)
    throw refusal("run_as_user is 0 but run_as_non_root is set: drop one of the two");
}

/**
 * Returns a capability's name without prefix, in upper case: `net_admin` and `CAP_NET_ADMIN` become `NET_ADMIN`. Throws
 * START_FAILED for an unknown name.
 */
export function capabilityName(text: string): string {
  const name = text.toUpperCase().replace(/^CAP_/, "");
  if (name === "ALL" || CAPABILITIES.has(name)) return name;
  throw refusal(`${JSON.stringify(text)} is not a Linux capability`);
}

/** Reports whether the image's own user has to be known before a container can be started. */
export function needsImageUser({ user, security }: Pick<ContainerSpec, "user" | "security">): boolean {
  return user?.uid === undefined && (security?.runAsNonRoot === true || user?.gid !== undefined);
}

/**
 * Throws if the image's user is or may be root. As in Kubernetes, a user given by name can't be verified, because only
 * the image maps the name to a number. `imageUser` is the image's USER: empty, `name` or `uid`, optionally with
 * `:group`.
 */
export function checkNonRoot(image: string, imageUser: string): void {
  const user = imageUser.split(":", 1)[0] ?? "";
  const shown = `(user ${JSON.stringify(imageUser)})`;
  if (user === "" || /^0+$/.test(user) || user === "root") {
    throw refusal(`image ${image} runs as root ${shown}: set run_as_user or drop run_as_non_root`);
  }
  if (!/^\d+$/.test(user)) {
    throw refusal(
      `image ${image} names its user ${shown}, so it can't be verified that this is not root: set run_as_user to a number`,
    );
  }
}

function refusal(message: string): RuntimeError {
  return new RuntimeError("START_FAILED", message, { retryable: false });
}
