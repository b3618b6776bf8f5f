import type {
  Client,
  ClientDuplexStream,
  ClientReadableStream,
  Metadata,
  MethodDefinition,
  ServiceDefinition,
} from "@grpc/grpc-js";

/** Unary methods as promises, server streams as iterables, and bidirectional streams unchanged. */
export type Calls<S> = { readonly [Name in keyof S]: Call<S[Name]> };

type Call<D> = D extends {
  requestStream: infer Sends;
  responseStream: infer Streams;
  requestDeserialize: (bytes: Buffer) => infer Request;
  responseDeserialize: (bytes: Buffer) => infer Response;
}
  ? Sends extends true
    ? () => ClientDuplexStream<Request, Response>
    : Streams extends true
      ? (request: Request) => ClientReadableStream<Response>
      : (request: Request) => Promise<Response>
  : never;

/** Returns the methods of a service over a plain client, which sends the metadata. */
export function callsOf<S extends ServiceDefinition>(
  definition: S,
  client: Client,
  metadata: Metadata,
): Calls<S> {
  const calls = Object.entries(definition).map(([name, method]) => [name, callOf(client, method, metadata)]);
  return Object.fromEntries(calls) as Calls<S>;
}

function callOf(client: Client, method: MethodDefinition<unknown, unknown>, metadata: Metadata) {
  const { path, requestSerialize, responseDeserialize } = method;
  if (method.requestStream)
    return () => client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
  if (method.responseStream) {
    return (request: unknown) =>
      client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata);
  }
  return (request: unknown) =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        (error, response) => (error === null ? resolve(response) : reject(error)),
      );
    });
}
