/** The kernel's capabilities in Kubernetes' notation, without `CAP_`. */
const capabilities: ReadonlySet<string> = new Set([
  ..."AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE".split(
    " ",
  ),
  ..."DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE".split(
    " ",
  ),
  ..."MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID".split(
    " ",
  ),
  ..."SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO".split(" "),
  ..."SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM".split(" "),
]);

/** Returns what is wrong with the name. Undefined: it is valid. */
export function capabilityProblem(name: string): string | undefined {
  if (name === "ALL" || capabilities.has(name)) return undefined;
  const meant = name.toUpperCase().replace(/^CAP_/, "");
  return capabilities.has(meant) || meant === "ALL"
    ? `must be written ${meant}`
    : "is not a capability such as NET_BIND_SERVICE, or ALL";
}
