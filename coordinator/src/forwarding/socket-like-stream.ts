import { Duplex } from "node:stream";

/**
 * A stream that Node's HTTP client accepts as a socket. Both directions end independently. The socket's methods do nothing.
 */
export abstract class SocketLikeStream extends Duplex {
  constructor() {
    super({ allowHalfOpen: true });
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
