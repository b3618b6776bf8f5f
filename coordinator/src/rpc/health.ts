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
  /** The full names of the services on the port. */
  readonly services: ReadonlySet<string>;
}

/** The interval of checks, and so the longest delay after which a watcher receives a change. */
const INTERVAL_MS = 1_000;

/** Implements `grpc.health.v1`. All services are healthy exactly while the store is. */
export function healthService(options: HealthOptions): Handlers<typeof HealthService> {
  return {
    check: async ({ service }) => {
      const status = statusOf(service, options);
      if (status === Status.SERVICE_UNKNOWN)
        throw new CoordinatorError(
          "NOT_FOUND",
          `this port does not serve "${service.slice(0, 100)}"; it serves ${[...options.services].join(", ")}`,
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
