import type { HostAbilities } from "../src/host-abilities.ts";

/** A host with nothing special. */
export function aHost(change: Partial<HostAbilities> = {}): HostAbilities {
  return {
    hostname: "host-1",
    seLinux: false,
    sctp: true,
    runtimeClasses: {},
    seccompDir: "/var/lib/forage/agent/seccomp",
    ...change,
  };
}
