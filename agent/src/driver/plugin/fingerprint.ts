import {
  type FingerprintResponse,
  FingerprintResponse_HealthState as HealthState,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { Attribute } from "@forage/proto/plugins/shared/structs/proto/attribute";
import { type Clock, pause } from "../../clock.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import { type DriverHealth, decideHealth } from "./driver-health.ts";
import type { ContainerdObserver } from "./observe-containerd.ts";

export interface FingerprintOptions {
  readonly options: DriverOptions;
  readonly version: string;
  readonly observer: ContainerdObserver;
  readonly clock: Clock;
}

/** The interval that Nomad's own drivers use. */
const REPEAT_MS = 30_000;
/**
 * The interval of checks of containerd, which bounds the delay until Nomad receives a change. A check opens one
 * connection.
 */
const CHECK_INTERVAL_MS = 2_000;

/**
 * Yields the driver's health at once, after each change, and every 30 s. Ends only when the signal aborts, because
 * Nomad restarts a driver whose stream ends.
 */
export async function* fingerprint(
  { options, version, observer, clock }: FingerprintOptions,
  signal: AbortSignal,
): AsyncGenerator<FingerprintResponse> {
  let wasReady = false;
  while (!signal.aborted) {
    const observation = options.enabled
      ? await observer.observe(signal)
      : { type: "missing" as const, reason: "disabled" };
    if (signal.aborted) return;
    const health = decideHealth(observation, options, version, wasReady);
    wasReady ||= observation.type === "ready";
    yield toResponse(health);
    await nextOccasion({ options, observer, clock }, health.state === HealthState.HEALTHY, signal);
  }
}

/** Waits until the socket's state contradicts the health last reported to Nomad, at most 30 s. */
async function nextOccasion(
  { options, observer, clock }: Pick<FingerprintOptions, "options" | "observer" | "clock">,
  healthy: boolean,
  signal: AbortSignal,
): Promise<void> {
  const untilMs = clock.monotonicMs() + REPEAT_MS;
  while (!signal.aborted && clock.monotonicMs() < untilMs) {
    await pause(clock, CHECK_INTERVAL_MS, signal);
    if (options.enabled && (await observer.isListening()) !== healthy) return;
  }
}

function toResponse({ state, description, attributes }: DriverHealth): FingerprintResponse {
  return {
    health: state,
    healthDescription: description,
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [name, toAttribute(value)]),
    ),
  };
}

function toAttribute(value: string | boolean): Attribute {
  return typeof value === "boolean"
    ? { value: { $case: "boolVal", value }, unit: "" }
    : { value: { $case: "stringVal", value }, unit: "" };
}
