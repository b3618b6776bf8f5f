import { readFileSync } from "node:fs";
import { get } from "node:http";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  type Endpoint,
  type ListEndpointsResponse,
  OperatorServiceClient,
} from "@forage/proto/forage/operator/v1/operator";
import type { System } from "./system.ts";

/** Requests that continue until they are ended, each to an endpoint from a new look-up. */
export interface Traffic {
  /** The number of each answer. */
  readonly answers: ReadonlyMap<string, number>;
  /** The descriptions of requests that got no answer. */
  readonly failures: readonly string[];
  /** The number of answered requests. */
  readonly count: number;
  end(): Promise<void>;
}

/**
 * The interval of look-ups. Clients are a little behind, but far less than a pod continues to serve after it was
 * withdrawn.
 */
const CHECK_EVERY_MS = 1_000;
const CLIENTS = 4;
const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Starts the configured number of clients. Each sends one request after another to the endpoints of `service` in turn.
 */
export function startTraffic(system: System, service: string): Traffic {
  const credentials = channelCredentials({ caPem: readFileSync(system.caFile, "utf8") });
  const metadata = bearerMetadata(readFileSync(system.tokenFile, "utf8"));
  const operator = new OperatorServiceClient(system.grpc, credentials);
  const answers = new Map<string, number>();
  const failures: string[] = [];
  let count = 0;
  let ended = false;
  const look = (): Promise<readonly Endpoint[]> =>
    new Promise((resolve, reject) => {
      const request = { namespace: "e2e", service };
      operator.listEndpoints(request, metadata, (error, response: ListEndpointsResponse) =>
        error === null ? resolve(response.endpoints) : reject(error),
      );
    });
  const client = async (first: number): Promise<void> => {
    let endpoints: readonly Endpoint[] = [];
    let lookedMs = Number.NEGATIVE_INFINITY;
    for (let turn = first; !ended; turn++) {
      if (performance.now() - lookedMs > CHECK_EVERY_MS) {
        endpoints = await look();
        lookedMs = performance.now();
      }
      const endpoint = endpoints[turn % endpoints.length];
      if (endpoint === undefined) {
        failures.push("there is no endpoint");
        continue;
      }
      const answer = await ask(endpoint).catch((error) => {
        failures.push(`${endpoint.pod} at ${endpoint.address}:${endpoint.port}: ${error}`);
        return undefined;
      });
      if (answer === undefined) continue;
      count += 1;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  };
  const running = Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  // The error is handled when the traffic ends.
  running.catch(() => undefined);
  return {
    answers,
    failures,
    get count() {
      return count;
    },
    end: async () => {
      ended = true;
      await running.finally(() => operator.close());
    },
  };
}

/** Sends a request on a new connection, because a kept one may be closed by its server at any time. */
function ask({ address, port }: Endpoint): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(
      { host: address, port, agent: false, timeout: REQUEST_TIMEOUT_MS },
      async (response) => {
        try {
          let text = "";
          for await (const chunk of response) text += chunk;
          if (response.statusCode === 200) resolve(text.trim());
          else reject(new Error(`status ${response.statusCode}`));
        } catch (error) {
          reject(error);
        }
      },
    );
    request.on("timeout", () => request.destroy(new Error(`no answer in ${REQUEST_TIMEOUT_MS} ms`)));
    request.on("error", reject);
  });
}
