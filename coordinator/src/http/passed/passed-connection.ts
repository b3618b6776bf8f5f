import type { HttpRequest, HttpResponse } from "@forage/proto/forage/coordinator/v1/coordinator";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { SocketLikeStream } from "../../forwarding/socket-like-stream.ts";

/** A connection to the leader over one call. */
export class PassedConnection extends SocketLikeStream {
  readonly #call: ClientDuplexStream<HttpRequest, HttpResponse>;

  constructor(call: ClientDuplexStream<HttpRequest, HttpResponse>) {
    super();
    this.#call = call;
    call.on("data", ({ part }: HttpResponse) => {
      if (part?.$case === "body" && !this.push(part.value)) call.pause();
    });
    call.on("end", () => this.push(null));
    call.on("error", (error) => this.destroy(error));
  }

  override _read(): void {
    this.#call.resume();
  }

  override _write(value: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const hasRoom = this.#call.write({ part: { $case: "body", value } });
    const go = (): void => {
      this.#call.off("drain", go);
      this.#call.off("close", go);
      done();
    };
    this.#call.once("drain", go);
    this.#call.once("close", go);
    if (hasRoom) go();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#call.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#call.cancel();
    done(error);
  }
}
