import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type { Session } from "ssh2";
import { CoordinatorError } from "../../errors.ts";
import { serveSession } from "./ssh-session.ts";

test("a command that can't be started ends with the reason and the exit code 255", () => {
  const session = new EventEmitter();
  const open = () => {
    throw new CoordinatorError("UNAVAILABLE", "node n1 is unavailable");
  };
  serveSession(session as unknown as Session, { open, moved: () => {} });
  const channel = new FakeChannel();
  session.emit(
    "exec",
    () => channel,
    () => assert.fail("refused"),
    { command: "true" },
  );
  assert.deepEqual(channel.sent, ["node n1 is unavailable\r\n", 255, "closed"]);
});

/** Keeps what is sent to the client. */
class FakeChannel extends EventEmitter {
  readonly sent: unknown[] = [];
  readonly stderr = { write: (text: string) => this.sent.push(text) };

  exit(code: number): void {
    this.sent.push(code);
  }

  close(): void {
    this.sent.push("closed");
  }
}
