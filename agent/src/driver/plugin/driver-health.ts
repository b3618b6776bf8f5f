import { FingerprintResponse_HealthState as HealthState } from "@forage/proto/plugins/drivers/proto/driver";
import type { DriverOptions } from "../config/driver-options.ts";

/** The result of a check of the driver's dependencies. */
export type Observation =
  | { readonly type: "missing"; readonly reason: string }
  | { readonly type: "failing"; readonly reason: string }
  | { readonly type: "ready"; readonly containerd: string; readonly nerdctl: string };

export interface DriverHealth {
  readonly state: HealthState;
  readonly description: string;
  /** Attributes of the node, which jobs can use in constraints. */
  readonly attributes: Readonly<Record<string, string | boolean>>;
}

/** The prefix of the attributes; the driver's name in jobs. */
export const DRIVER_NAME = "forage";

/** Nomad compares a healthy driver's description with this word. */
const HEALTHY = "Healthy";

/**
 * Decides the health that Nomad receives. A dependency that was missing from the start makes the driver undetected, and
 * Nomad then hides the driver. A dependency that disappeared, such as the socket of a stopped containerd, makes the
 * driver unhealthy.
 */
export function decideHealth(
  observation: Observation,
  options: DriverOptions,
  version: string,
  wasReady: boolean,
): DriverHealth {
  const attributes = attributesOf(options, version);
  if (!options.enabled)
    return {
      state: HealthState.UNDETECTED,
      description: "disabled in the plugin's configuration",
      attributes: {},
    };
  switch (observation.type) {
    case "ready": {
      const { containerd, nerdctl } = observation;
      return {
        state: HealthState.HEALTHY,
        description: HEALTHY,
        attributes: {
          ...attributes,
          [`driver.${DRIVER_NAME}.containerd_version`]: plainVersion(containerd),
          [`driver.${DRIVER_NAME}.nerdctl_version`]: plainVersion(nerdctl),
        },
      };
    }
    case "failing":
      return { state: HealthState.UNHEALTHY, description: observation.reason, attributes };
    case "missing":
      return wasReady
        ? { state: HealthState.UNHEALTHY, description: observation.reason, attributes }
        : { state: HealthState.UNDETECTED, description: observation.reason, attributes: {} };
    default:
      return observation satisfies never;
  }
}

function attributesOf(options: DriverOptions, version: string): DriverHealth["attributes"] {
  return {
    [`driver.${DRIVER_NAME}`]: true,
    [`driver.${DRIVER_NAME}.version`]: version,
    [`driver.${DRIVER_NAME}.privileged.enabled`]: options.allowPrivileged,
    [`driver.${DRIVER_NAME}.volumes.enabled`]: options.volumes.enabled,
    ...(options.allowRuntimes.length > 0 && {
      [`driver.${DRIVER_NAME}.runtimes`]: options.allowRuntimes.join(","),
    }),
  };
}

/** Returns the version without a leading `v`, the form that version constraints of jobs expect. */
function plainVersion(text: string): string {
  return text.trim().replace(/^v(?=\d)/, "");
}
