import type { HostFeatures } from "../src/host-features.ts";

/** Returns a host without special features. */
export function aHost(change: Partial<HostFeatures> = {}): HostFeatures {
  return {
    hostname: "host-1",
    seLinux: false,
    sctp: true,
    runtimeClasses: {},
    seccompDir: "/var/lib/forage/agent/seccomp",
    ...change,
  };
}
