import { join } from "node:path";
import type { TestHost } from "../../../hack/lib/test-host.ts";
import type { DriverOptions } from "../../src/driver/config/driver-options.ts";
import type { TaskOptions } from "../../src/driver/config/task-options.ts";

/** Returns the driver's own configuration on a test host. */
export function driverOptions(host: TestHost, change: Partial<DriverOptions> = {}): DriverOptions {
  return {
    enabled: true,
    containerdAddress: host.containerd.address,
    containerdNamespace: host.namespace,
    nerdctl: host.nerdctlPath,
    cniBinDir: "/usr/lib/cni",
    dataDir: join(host.dir, "driver"),
    runDir: join(host.dir, "driver-run"),
    allowPrivileged: false,
    allowCaps: ["ALL"],
    allowDevices: ["/dev/"],
    allowRuntimes: [],
    volumes: { enabled: true },
    gc: { container: true, image: false, imageDelayMs: 0 },
    imagePullTimeoutMs: 60_000,
    extraLabels: ["job_name"],
    disableLogCollection: false,
    ...change,
  };
}

export function taskOptions(change: Partial<TaskOptions> & Pick<TaskOptions, "image">): TaskOptions {
  return {
    ...{
      entrypoint: [],
      args: [],
      init: false,
      tty: false,

      imagePullPolicy: "missing",
      imagePullTimeoutMs: 60_000,
    },
    ...{ capAdd: [], capDrop: [], privileged: false, readonlyRootfs: false, noNewPrivileges: false },
    ...{ seccompProfile: { type: "default" }, groupAdd: [], hostNamespaces: [] },
    ...{
      mounts: [],
      devices: [],
      ports: [],
      extraHosts: [],
      sysctl: {},
      ulimits: [],
      cpuHardLimit: false,
      labels: {},
    },
    ...change,
  };
}
