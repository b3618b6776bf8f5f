import type { TestContext } from "node:test";
import type { FileRegistry } from "@bufbuild/protobuf";
import { channelCredentials } from "@forage/identity/credentials";
import { AgentServiceService, EnrollmentServiceService } from "@forage/proto/forage/agent/v1/agent";
import {
  Client,
  type handleBidiStreamingCall,
  type handleUnaryCall,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { IdentityFiles } from "../agent/src/link/node-identity.ts";
import { serverMaterial } from "../coordinator/src/identity.ts";
import type { World } from "../coordinator/test/support/world.ts";
import type { WireFilter } from "../proto/test/wire-filter.ts";

export interface VersionRelayOptions {
  readonly world: Pick<World, "address" | "authority" | "caPem">;
  readonly registry: FileRegistry;
  /** The directory with the agent's certificate, which the relay presents instead of the agent. */
  readonly identityDir: string;
}

/** A relayed call, and the types of its messages. */
interface Relayed {
  readonly path: string;
  readonly input: string;
  readonly output: string;
}

const SERVICES: ServiceDefinition = { ...EnrollmentServiceService, ...AgentServiceService };

/** Forwards the calls of one agent to a coordinator, and reduces each message to what the filter's version supports. */
export class VersionRelay {
  /** If undefined, messages are unchanged. */
  filter: WireFilter | undefined;
  /** The number of streams that the agent has opened to receive its assignment. */
  connects = 0;
  readonly #options: VersionRelayOptions;
  readonly #server = new Server();
  readonly #identity: IdentityFiles;
  /** Functions that break the open streams. */
  readonly #cuts = new Set<() => void>();
  #port = 0;

  private constructor(options: VersionRelayOptions) {
    this.#options = options;
    this.#identity = new IdentityFiles(options.identityDir);
  }

  static async start(t: TestContext, options: VersionRelayOptions): Promise<VersionRelay> {
    const relay = new VersionRelay(options);
    await relay.#listen();
    t.after(() => {
      relay.cut();
      relay.#server.forceShutdown();
    });
    return relay;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Breaks all streams. The agent opens new ones. */
  cut(): void {
    for (const cut of [...this.#cuts]) cut();
  }

  async #listen(): Promise<void> {
    const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
    const handlers: UntypedServiceImplementation = {};
    for (const [name, method] of Object.entries(SERVICES)) {
      definition[name] = { ...method, ...BYTES };
      const call = this.#describe(method.path);
      handlers[name] = method.requestStream ? this.#relayStream(call) : this.#relayUnary(call);
    }
    this.#server.addService(definition, handlers);
    const { keyPem, chainPem } = await serverMaterial(this.#options.world.authority, ["127.0.0.1"]);
    const pair = { private_key: Buffer.from(keyPem), cert_chain: Buffer.from(chainPem) };
    const credentials = ServerCredentials.createSsl(null, [pair]);
    this.#port = await new Promise((resolve, reject) => {
      this.#server.bindAsync("127.0.0.1:0", credentials, (error, port) =>
        error === null ? resolve(port) : reject(error),
      );
    });
  }

  #describe(path: string): Relayed {
    const [, service = "", name = ""] = path.split("/");
    const method = this.#options.registry.getService(service)?.methods.find((each) => each.name === name);
    if (method === undefined) throw new Error(`there is no method ${path}`);
    return { path, input: method.input.typeName, output: method.output.typeName };
  }

  #relayUnary(relayed: Relayed): handleUnaryCall<Buffer, Buffer> {
    const { path, input, output } = relayed;
    return (call, callback) => {
      const { filter } = this;
      if (filter?.hasMethod(path) === false) return callback({ code: status.UNIMPLEMENTED, details: path });
      void this.#open().then((client) => {
        const request = pass(filter, input, call.request);
        client.makeUnaryRequest<Buffer, Buffer>(path, same, same, request, (error, response = NOTHING) => {
          client.close();
          if (error === null) callback(null, pass(filter, output, response));
          else callback({ code: error.code, details: error.details });
        });
      });
    };
  }

  #relayStream(relayed: Relayed): handleBidiStreamingCall<Buffer, Buffer> {
    const { path, input, output } = relayed;
    return (call) => {
      const { filter } = this;
      if (filter?.hasMethod(path) === false)
        return call.emit("error", { code: status.UNIMPLEMENTED, details: path });
      void this.#open().then((client) => {
        const upstream = client.makeBidiStreamRequest(path, same, same);
        const cut = (): void => upstream.cancel();
        this.#cuts.add(cut);
        if (path === AgentServiceService.connect.path) this.connects++;
        call.on("data", (message: Buffer) => upstream.write(pass(filter, input, message)));
        call.on("end", () => upstream.end());
        call.on("cancelled", () => upstream.cancel());
        upstream.on("data", (message: Buffer) => call.write(pass(filter, output, message)));
        // The status contains the same error.
        upstream.on("error", () => {});
        upstream.on("status", ({ code, details }) => {
          this.#cuts.delete(cut);
          client.close();
          if (code === status.OK) call.end();
          else call.emit("error", { code, details });
        });
      });
    };
  }

  async #open(): Promise<Client> {
    const { address, caPem } = this.#options.world;
    const identity = await this.#identity.load();
    const pair = identity && { certPem: identity.pair.chainPem, keyPem: identity.pair.keyPem };
    return new Client(address, channelCredentials({ caPem, ...pair }), {
      "grpc.use_local_subchannel_pool": 1,
    });
  }
}

const NOTHING = Buffer.alloc(0);

function same(bytes: Buffer): Buffer {
  return bytes;
}

const BYTES = {
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
} as const;

function pass(filter: WireFilter | undefined, type: string, bytes: Buffer): Buffer {
  return filter === undefined ? bytes : Buffer.from(filter.filter(type, bytes));
}
