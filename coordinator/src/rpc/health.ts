import {
  type HealthCheckResponse,
  type HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from "@forage/proto/grpc/health/v1/health";
import { CoordinatorError } from "../errors.ts";
import type { Clock } from "../time/clock.ts";
import type { Handlers } from "./serve.ts";

export interface HealthOptions {
  readonly store: { health(): { readonly status: string } };
  readonly clock: Pick<Clock, "schedule">;
  /** Full names of the services of the port. */
  readonly services: ReadonlySet<string>;
}

/** A watcher learns of a change within this time. */
const INTERVAL_MS = 1_000;

/** `grpc.health.v1`: all services of the port are healthy together, while the store is. */
export function healthService(options: HealthOptions): Handlers<typeof HealthService> {
  return {
    check: async ({ service }) => {
      const status = statusOf(service, options);
      if (status === Status.SERVICE_UNKNOWN)
        throw new CoordinatorError(
          "NOT_FOUND",
          `there is no service "${service.slice(0, 100)}" on this port; it has ${[...options.services].join(", ")}`,
        );
      return { status };
    },
    watch: async function* ({ service }, { signal }): AsyncGenerator<HealthCheckResponse> {
      let sent: Status | undefined;
      while (!signal.aborted) {
        const status = statusOf(service, options);
        if (status !== sent) yield { status };
        sent = status;
        await pause(options, signal);
      }
    },
  };
}

function statusOf(service: string, { store, services }: HealthOptions): Status {
  if (service !== "" && !services.has(service)) return Status.SERVICE_UNKNOWN;
  return store.health().status === "ok" ? Status.SERVING : Status.NOT_SERVING;
}

function pause({ clock }: HealthOptions, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.schedule(INTERVAL_MS, finish);
    signal.addEventListener("abort", finish, { once: true });
    if (signal.aborted) finish();
  });
}
