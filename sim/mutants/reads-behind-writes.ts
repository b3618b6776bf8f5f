import { connect as real } from "../../coordinator/src/link/connect.ts";

export * from "../../coordinator/src/link/connect.ts";

type Options = Parameters<typeof real>[2];

/** Reads an agent's next message only after the store has answered, so that heartbeats wait for the disk. */
export const connect: typeof real = (requests, context, options) =>
  real(afterTheDisk(requests, options), context, options);

async function* afterTheDisk<T>(requests: AsyncIterable<T>, { store }: Options): AsyncGenerator<T> {
  for await (const request of requests) {
    yield request;
    await store.get("history");
  }
}
