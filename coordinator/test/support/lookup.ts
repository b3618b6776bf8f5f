import assert from "node:assert/strict";
import type { Update } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";
import type { ClientReadableStream, StatusObject } from "@grpc/grpc-js";

/** A proxy's side of one Destination stream, with the state from the updates that it has read. */
export class Lookup {
  /** The endpoints as `address:port`, with their pods. */
  readonly endpoints = new Map<string, string>();
  /** Whether the service exists; undefined until the first update. */
  exists: boolean | undefined;
  /** The kinds of the received updates, in order. */
  readonly updates: string[] = [];
  readonly #stream: ClientReadableStream<Update>;
  readonly #iterator: AsyncIterator<Update>;
  readonly ended: Promise<StatusObject>;

  constructor(stream: ClientReadableStream<Update>) {
    this.#stream = stream;
    stream.on("error", () => {});
    this.ended = new Promise((resolve) => stream.on("status", resolve));
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  /** Reads one update. Returns false at the end of the stream. */
  async read(): Promise<boolean> {
    const next = await this.#iterator.next();
    if (next.done) return false;
    this.#take(next.value);
    return true;
  }

  /** Reads updates until the condition holds. The test's time limit bounds the wait. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) assert.ok(await this.read(), "the stream ended before it held");
  }

  pods(): string[] {
    return [...this.endpoints.values()].sort();
  }

  close(): void {
    this.#stream.cancel();
  }

  #take({ update }: Update): void {
    this.updates.push(update?.$case ?? "nothing");
    switch (update?.$case) {
      case "add":
        this.exists = true;
        for (const { addr, metricLabels } of update.value.addrs)
          this.endpoints.set(textOf(addr), metricLabels.pod ?? "");
        break;
      case "remove":
        for (const addr of update.value.addrs) {
          assert.ok(this.endpoints.delete(textOf(addr)), `${textOf(addr)} was not known`);
        }
        break;
      case "noEndpoints":
        this.exists = update.value.exists;
        this.endpoints.clear();
        break;
      default:
        assert.fail("an empty update");
    }
  }
}

function textOf(address: TcpAddress | undefined): string {
  const ip = address?.ip?.ip;
  assert.ok(ip?.$case === "ipv4");
  return `${[24, 16, 8, 0].map((shift) => (ip.value >>> shift) & 0xff).join(".")}:${address?.port}`;
}
