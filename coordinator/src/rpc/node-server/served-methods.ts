import {
  Server,
  type ServiceDefinition,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Method } from "../handler.ts";

/** A method with its handler, as grpc-js calls it. */
export interface ServedMethod {
  readonly method: Method;
  readonly handle: UntypedHandleCall;
}

/** A server of grpc-js whose methods another server can serve too. */
export class SharedServer extends Server {
  readonly #methods = new Map<string, ServedMethod>();

  override addService(service: ServiceDefinition, implementation: UntypedServiceImplementation): void {
    super.addService(service, implementation);
    for (const [name, method] of Object.entries(service)) {
      const handle = implementation[name];
      if (handle !== undefined) this.#methods.set(method.path, { method, handle });
    }
  }

  override removeService(service: ServiceDefinition): void {
    super.removeService(service);
    for (const { path } of Object.values(service)) this.#methods.delete(path);
  }

  /** Returns the method of a path; undefined if it is not served. */
  methodOf(path: string): ServedMethod | undefined {
    return this.#methods.get(path);
  }
}
