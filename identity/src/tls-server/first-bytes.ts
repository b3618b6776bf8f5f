import type { Socket } from "node:net";

/**
 * Calls `done` once the first bytes of a paused connection can be read, or with an error if none arrive in time. Does not call it if
 * the connection closes. Also closes the connection if its peer has left by then, for example because it waited too long for its
 * turn: a handshake with it would cost a millisecond for nothing.
 *
 * If the first message is available when the handshake starts, Node allocates a read buffer of 16 KiB. Otherwise it allocates one
 * of 64 KiB, and keeps it as long as the connection.
 */
export function onFirstBytes(
  socket: Socket,
  limitMs: number,
  done: (error?: Error & { code: string }) => void,
): void {
  let length = 0;
  const end = (): void => {
    clearTimeout(tooLong);
    socket.off("readable", read).off("close", end);
  };
  const read = (): void => {
    // The event without further bytes reports the end.
    if (length > 0 && socket.readableLength === length) socket.destroy();
    else if (length === 0 && socket.readableLength > 0) afterNextPoll(start);
    length = socket.readableLength;
  };
  const start = (): void => {
    if (socket.destroyed) return;
    end();
    done();
  };
  const tooLong = setTimeout(() => {
    end();
    done(Object.assign(new Error("the peer began no handshake"), { code: "ERR_TLS_HANDSHAKE_TIMEOUT" }));
  }, limitMs);
  socket.on("readable", read).on("close", end);
}

/** Calls back once an end that is already there has been read, which takes one more round of the event loop. */
function afterNextPoll(run: () => void): void {
  setImmediate(() => setImmediate(run));
}
