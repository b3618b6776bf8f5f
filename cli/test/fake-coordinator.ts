import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CertificateAuthority } from "@forage/identity/ca";
import { WorkspaceManagerService } from "@forage/proto/core";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { BadRequest } from "@forage/proto/google/rpc/error_details";
import { Status } from "@forage/proto/google/rpc/status";
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";

export type Operator = typeof OperatorServiceService;
export type Forest = typeof ForageServiceService;
type Methods = Operator & Forest & typeof WorkspaceManagerService;

type RequestOf<M> = M extends { requestDeserialize: (bytes: Buffer) => infer R } ? R : never;
type ResponseOf<M> = M extends { responseDeserialize: (bytes: Buffer) => infer R } ? R : never;

/** The answers of the coordinator in a test. Calls without an answer fail with UNIMPLEMENTED. */
export type Answers = {
  -readonly [Name in keyof Methods]?: Methods[Name] extends { requestStream: true }
    ? (call: ServerDuplexStream<RequestOf<Methods[Name]>, ResponseOf<Methods[Name]>>) => void
    : Methods[Name] extends { responseStream: true }
      ? (call: ServerWritableStream<RequestOf<Methods[Name]>, ResponseOf<Methods[Name]>>) => void
      : (request: RequestOf<Methods[Name]>) => ResponseOf<Methods[Name]> | Promise<ResponseOf<Methods[Name]>>;
};

export interface Call {
  readonly method: string;
  readonly request: unknown;
  readonly authorization: string;
}

/**
 * A fake coordinator with its own authority on a loopback port. Its answers can be changed while it
 * runs.
 */
export class FakeCoordinator {
  answers: Answers;
  readonly calls: Call[] = [];
  /** Bytes appended to each response, such as fields that only a newer coordinator has. */
  moreBytes = Buffer.alloc(0);
  readonly token = `flt_${"0".repeat(12)}_${"a".repeat(43)}`;
  readonly #authority: CertificateAuthority;
  readonly #dir = mkdtempSync(join(tmpdir(), "forage-cli-test-"));
  #server: Server | undefined;
  #port = 0;

  private constructor(authority: CertificateAuthority, answers: Answers) {
    this.#authority = authority;
    this.answers = answers;
    writeFileSync(this.caFile, authority.certPem);
    writeFileSync(this.tokenFile, `${this.token}\n`, { mode: 0o600 });
  }

  /**
   * Starts a coordinator. `aheadMs` is how far its clock was ahead when it created the certificate
   * of its authority or its own.
   */
  static async start(
    answers: Answers = {},
    aheadMs: { readonly authority?: number; readonly server?: number } = {},
  ): Promise<FakeCoordinator> {
    let ahead = aheadMs.authority ?? 0;
    const nowMs = (): number => Date.now() + ahead;
    const authority = await CertificateAuthority.create("test", { nowMs, randomBytes });
    ahead = aheadMs.server ?? 0;
    const fake = new FakeCoordinator(authority, answers);
    await fake.listen();
    return fake;
  }

  /** Starts another coordinator of the same cluster. */
  async beside(): Promise<FakeCoordinator> {
    const fake = new FakeCoordinator(this.#authority, {});
    await fake.listen();
    return fake;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get caFile(): string {
    return join(this.#dir, "ca.crt");
  }

  get tokenFile(): string {
    return join(this.#dir, "token");
  }

  /** A directory for the test's own files, which `close` removes. */
  get dir(): string {
    return this.#dir;
  }

  /** The environment with which the command connects to this coordinator. */
  get env(): Record<string, string> {
    return { FORAGE_SERVER: this.address, FORAGE_CA_FILE: this.caFile, FORAGE_TOKEN_FILE: this.tokenFile };
  }

  /** Listens on the port, which stays the same after a restart. */
  async listen(): Promise<void> {
    const { cert, key } = await this.issueServer();
    const credentials = ServerCredentials.createSsl(null, [
      { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) },
    ]);
    const server = new Server();
    for (const definition of [OperatorServiceService, ForageServiceService, WorkspaceManagerService]) {
      server.addService(this.#extended(definition), this.#implement(definition));
    }
    this.#port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(this.address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
    });
    this.#server = server;
  }

  /** Issues a certificate that the command accepts from a server on loopback. */
  async issueServer(): Promise<{ readonly cert: string; readonly key: string }> {
    const { chainPem, keyPem } = await this.#authority.issueServer({
      dnsNames: ["localhost"],
      ipAddresses: ["127.0.0.1"],
    });
    return { cert: chainPem, key: keyPem };
  }

  /** Closes every connection abruptly, as if the process were killed. */
  cut(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  requests(method: string): unknown[] {
    return this.calls.filter((call) => call.method === method).map(({ request }) => request);
  }

  close(): void {
    this.cut();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #extended(definition: ServiceDefinition): ServiceDefinition {
    const methods = Object.entries(definition).map(([name, method]) => {
      const responseSerialize = (response: unknown): Buffer =>
        Buffer.concat([method.responseSerialize(response), this.moreBytes]);
      return [name, { ...method, responseSerialize }];
    });
    return Object.fromEntries(methods);
  }

  #implement(definition: ServiceDefinition): UntypedServiceImplementation {
    const implementation: UntypedServiceImplementation = {};
    for (const [name, method] of Object.entries(definition)) {
      implementation[name] = method.responseStream
        ? (call: ServerDuplexStream<unknown, unknown>) => this.#stream(name, method.requestStream, call)
        : (call: ServerUnaryCall<unknown, unknown>, done: sendUnaryData<unknown>) =>
            this.#unary(name, call, done);
    }
    return implementation;
  }

  #unary(name: string, call: ServerUnaryCall<unknown, unknown>, done: sendUnaryData<unknown>): void {
    this.#record(name, call.request, call.metadata);
    const answer = this.answers[name as keyof Answers] as ((request: unknown) => unknown) | undefined;
    Promise.resolve()
      .then(() => {
        if (answer !== undefined) return answer(call.request);
        throw grpcError(status.UNIMPLEMENTED, `the test gives no answer to ${name}`);
      })
      .then(
        (response) => done(null, response),
        (error: unknown) => done(error as Error),
      );
  }

  #stream(name: string, fromClient: boolean, call: ServerDuplexStream<unknown, unknown>): void {
    const { request } = call as unknown as { request?: unknown };
    this.#record(name, fromClient ? undefined : request, call.metadata);
    const answer = this.answers[name as keyof Answers] as ((call: unknown) => void) | undefined;
    call.on("error", () => {});
    if (answer === undefined)
      call.emit("error", grpcError(status.UNIMPLEMENTED, `the test gives no answer to ${name}`));
    else answer(call);
  }

  #record(method: string, request: unknown, metadata: Metadata): void {
    this.calls.push({ method, request, authorization: String(metadata.get("authorization")[0] ?? "") });
  }
}

/** Returns an error that a handler throws or emits to fail the call, with the violations as google.rpc.BadRequest. */
export function grpcError(
  code: status,
  details: string,
  violations: readonly { field: string; description: string }[] = [],
) {
  const metadata = new Metadata();
  if (violations.length > 0) {
    const value = Buffer.from(
      BadRequest.encode(BadRequest.fromPartial({ fieldViolations: [...violations] })).finish(),
    );
    const typeUrl = "type.googleapis.com/google.rpc.BadRequest";
    const bytes = Status.encode(
      Status.fromPartial({ code, message: details, details: [{ typeUrl, value }] }),
    ).finish();
    metadata.set("grpc-status-details-bin", Buffer.from(bytes));
  }
  return Object.assign(new Error(details), { code, details, metadata });
}
