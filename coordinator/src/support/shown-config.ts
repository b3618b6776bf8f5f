import { type SettingMarks, showSettings } from "@forage/common/show-settings";
import type { Config } from "../config.ts";
import { WORKSPACE_MARKS } from "./workspace-marks.ts";

/**
 * Declares which settings a support bundle shows. Most secrets are in files, of which the
 * configuration contains only the paths. The path of a webhook's URL is often a secret.
 */
export const CONFIG_MARKS: SettingMarks<Config> = {
  dataDir: "shown",
  grpc: { listen: "shown" },
  http: { listen: "shown", tls: "shown", podDomain: "shown" },
  destination: "shown",
  names: "shown",
  store: {
    etcd: {
      endpoints: "shown",
      ca: "shown",
      cert: "shown",
      key: "shown",
      prefix: "shown",
      trustTokensSeconds: "shown",
    },
  },
  backups: { enabled: "shown", intervalHours: "shown", keep: "shown", directory: "shown" },
  cluster: "shown",
  clusterDomain: "shown",
  adminTokenFile: "shown",
  secretKeyFile: "shown",
  identityIssuer: "shown",
  profile: "shown",
  rollout: { progressDeadlineSeconds: "shown", placementDeadlineSeconds: "shown", stableSeconds: "shown" },
  services: { virtualIps: "shown", virtualIps6: "shown", nodePorts: "shown", loadBalancerIps: "shown" },
  certificates: {
    issuer: "shown",
    acme: {
      directory: "origin",
      email: "left-out",
      termsAgreed: "shown",
      caFile: "shown",
      externalAccountBinding: { keyId: "left-out", hmacKeyFile: "shown" },
    },
  },
  events: { maxCount: "shown", maxMegabytes: "shown" },
  notifications: {
    ...{ name: "shown", url: "origin", secretFile: "shown", types: "shown" },
    ...{ reasons: "shown", kinds: "shown", namespaces: "shown" },
  },
  autoscaling: { intervalSeconds: "shown" },
  heartbeatIntervalSeconds: "shown",
  nodes: {
    unreachableSeconds: "shown",
    startGraceSeconds: "shown",
    unreachableTolerationSeconds: "shown",
    recoveryGraceSeconds: "shown",
    notReadyTolerationSeconds: "shown",
  },
  nodeCertificates: { lifetimeDays: "shown", graceDays: "shown" },
  rebalance: { intervalSeconds: "shown", maxMoves: "shown", goal: "shown" },
  workspaces: WORKSPACE_MARKS,
  logLevel: "shown",
};

/** Returns the configuration without possible secrets. */
export function shownConfig(config: Config): object {
  return showSettings(config, CONFIG_MARKS);
}
