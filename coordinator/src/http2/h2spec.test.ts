import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { ensureGoProgram } from "../../../hack/lib/go-program.ts";
import { encodeFields } from "./hpack/encode-fields.ts";
import { startServer } from "./test/server.ts";

const FOLDER = join(import.meta.dirname, "../../../hack/h2spec");
const HEAD = encodeFields([[":status", "200"]]);
const TRAILERS = encodeFields([["x-end", "true"]]);
let program = "";

before(
  async () => {
    program = await ensureGoProgram(FOLDER, "run", { quick: true });
  },
  { timeout: 20 * 60_000 },
);

test("passes all tests of h2spec", { timeout: 180_000 }, async (t) => {
  const { port } = await startServer(t, (stream) => {
    stream.user = {
      data: () => {},
      close: () => {},
      end: () => {
        stream.respond(HEAD);
        stream.write(Buffer.from("hello"), () => stream.end(TRAILERS));
      },
    };
  });
  const { stdout } = await promisify(execFile)(program, [String(port)]).catch((error: unknown) => {
    if (error instanceof Error && "stdout" in error && typeof error.stdout === "string")
      return { stdout: error.stdout };
    throw error;
  });
  assert.match(stdout, /145 tests, 145 passed, 0 skipped, 0 failed/, stdout.slice(-3_000));
});
