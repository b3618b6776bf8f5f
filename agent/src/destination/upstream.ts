import { DestinationService, type GetDestination } from "@forage/proto/destination";
import { type Client, Metadata, status } from "@grpc/grpc-js";
import { isServiceError } from "../link/client.ts";
import type { UpstreamEvents } from "./lookup.ts";
import type { LookupMethod } from "./relay.ts";

/** The header with the namespace of the pod for which a look-up is relayed. */
const NAMESPACE_KEY = "forage-namespace";

/** Opens streams from the coordinator, over a channel with the node's certificate. */
export class Upstream {
  /** Opens a channel with the certificate currently on disk. Rejects before the host has joined. */
  readonly #connect: () => Promise<Client>;
  #client: Promise<Client> | undefined;

  constructor(connect: () => Promise<Client>) {
    this.#connect = connect;
  }

  readonly open = (
    method: LookupMethod,
    request: GetDestination,
    namespace: string | undefined,
    events: UpstreamEvents,
  ): (() => void) => {
    this.#client ??= this.#connect();
    const opening = this.#client;
    let cancel = (): void => {};
    let cancelled = false;
    opening
      .then((client) => {
        if (!cancelled) cancel = this.#call(opening, client, method, request, namespace, events);
      })
      .catch((error: unknown) => {
        this.#drop(opening);
        events.ended({ code: status.UNAVAILABLE, details: String(error) });
      });
    return () => {
      cancelled = true;
      cancel();
    };
  };

  close(): void {
    if (this.#client !== undefined) this.#drop(this.#client);
  }

  #call(
    opening: Promise<Client>,
    client: Client,
    method: LookupMethod,
    request: GetDestination,
    namespace: string | undefined,
    events: UpstreamEvents,
  ): () => void {
    const { path, requestSerialize } = DestinationService[method];
    const metadata = new Metadata();
    if (namespace !== undefined) metadata.set(NAMESPACE_KEY, namespace);
    const asIs = (bytes: Buffer): Buffer => bytes;
    const call = client.makeServerStreamRequest(path, requestSerialize, asIs, request, metadata);
    call.on("data", (bytes: Buffer) => events.message(bytes));
    call.on("error", (error) => {
      // A newer certificate may be on disk.
      const { code, details } = isServiceError(error)
        ? error
        : { code: status.UNAVAILABLE, details: error.message };
      if (code === status.UNAVAILABLE || code === status.UNAUTHENTICATED) this.#drop(opening);
      events.ended({ code, details });
    });
    call.on("end", () => events.ended(undefined));
    return () => call.cancel();
  }

  #drop(client: Promise<Client>): void {
    if (this.#client === client) this.#client = undefined;
    client.then(
      (it) => it.close(),
      () => undefined,
    );
  }
}
