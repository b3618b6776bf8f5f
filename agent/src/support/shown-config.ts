import { type SettingMarks, showSettings } from "@forage/common/show-settings";
import type { Config } from "../config.ts";

/** Marks the settings that a support bundle shows. Secrets are in files, which the configuration only names. */
export const CONFIG_MARKS: SettingMarks<Config> = {
  dataDir: "shown",
  runDir: "shown",
  coordinator: { host: "shown", port: "shown" },
  coordinators: { host: "shown", port: "shown" },
  joinTokenFile: "shown",
  nodeName: "shown",
  instance: "shown",
  podCidr: "shown",
  podCidr6: "shown",
  containerd: { address: "shown", namespace: "shown" },
  nerdctl: "shown",
  cniBinDir: "shown",
  http: { listen: { host: "shown", port: "shown" } },
  hostPortRange: { first: "shown", last: "shown" },
  advertiseAddress: "shown",
  advertiseAddress6: "shown",
  labels: "shown",
  reserve: "shown",
  podsMax: "shown",
  devices: "shown",
  runtimeClasses: "shown",
  clusterDomain: "shown",
  dns: "shown",
  destination: { port: "shown" },
  nomad: { socket: "shown" },
  podAccess: { metadata: "shown", host: "shown", hostPorts: { port: "shown", protocol: "shown" } },
  preparedSandboxes: "shown",
  restart: { backOffBaseSeconds: "shown", backOffCapSeconds: "shown" },
  images: {
    ...{ unusedDays: "shown", highPercent: "shown", lowPercent: "shown" },
    ...{ otherNodes: "shown", tagsFrom: "shown", transfers: "shown", transferRate: "shown" },
  },
  // Keys are in files. Users and passwords are removed from the URLs of mirrors, as from every text.
  registries: "shown",
  logs: { nodeLimitBytes: "shown", streams: "shown" },
  loadBalancer: { interface: "shown" },
  gateway: {
    ...{ envoy: "shown", image: "shown", address: "shown", httpPort: "shown", httpsPort: "shown" },
    ...{ connectionsMax: "shown", memoryLimitBytes: "shown", trustedProxies: "shown" },
  },
  workspaces: { enabled: "shown" },
  logLevel: "shown",
};

/** Returns the configuration as the text of a file, without possible secrets. */
export function configText(config: Config): string {
  return `${JSON.stringify(showSettings(config, CONFIG_MARKS), undefined, 2)}\n`;
}
