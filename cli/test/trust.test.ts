import assert from "node:assert/strict";
import { connect, createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let other: FakeCoordinator;

before(async () => {
  [fake, other] = await Promise.all([FakeCoordinator.start(), FakeCoordinator.start()]);
});
after(() => {
  fake.close();
  other.close();
});

describe("the coordinator that the command calls", () => {
  test("sends no token to a coordinator whose certificate is from another authority", async () => {
    const { exitCode, stderr } = await runCommand(["get"], {
      env: { ...fake.env, FORAGE_SERVER: other.address },
    });
    assert.equal(exitCode, 1);
    assert.equal(
      stderr,
      `forage: ${other.address} has no certificate from the CA in ${fake.caFile}: use the CA file of this coordinator (--ca-file)\n`,
    );
    assert.deepEqual(other.calls, []);
  });

  test("refuses a certificate for other names", async () => {
    const server = fake.address.replace("127.0.0.1", "127.0.0.2");
    const relay = await listen("127.0.0.2", Number(server.split(":")[1]), fake.address);
    try {
      const { stderr } = await runCommand(["get"], { env: { ...fake.env, FORAGE_SERVER: server } });
      assert.match(stderr, /^forage: the certificate at 127\.0\.0\.2:\d+ is for other names/);
    } finally {
      relay.close();
    }
    assert.deepEqual(fake.calls, []);
  });

  for (const [what, aheadMs, expected] of [
    [
      "a certificate that is not valid yet",
      { server: 3 * 3_600_000 },
      /^forage: the certificate of 127\.0\.0\.1:\d+ is valid from \S+Z to \S+Z, and the clock of this host says \S+Z: compare the clocks/,
    ],
    [
      "a certificate that has expired",
      { server: -60 * 24 * 3_600_000, authority: -61 * 24 * 3_600_000 },
      /^forage: the certificate of 127\.0\.0\.1:\d+ is valid from \S+Z to \S+Z, and the clock of this host says \S+Z: compare the clocks/,
    ],
    [
      "an authority that is not valid yet",
      { server: 3 * 3_600_000, authority: 3 * 3_600_000 },
      /^forage: the CA in \S+ is valid from \S+Z to \S+Z, and the clock of this host says \S+Z: set this clock if it is wrong/,
    ],
  ] as const) {
    test(`names the clocks and not the CA file: ${what}`, async (t) => {
      const skewed = await FakeCoordinator.start({}, aheadMs);
      t.after(() => skewed.close());
      for (const line of [["get"], ["events", "--watch"]]) {
        const { exitCode, stderr } = await runCommand(line, { env: skewed.env });
        assert.equal(exitCode, 1);
        assert.match(stderr, expected);
        assert.doesNotMatch(stderr, /vouched/);
      }
      assert.deepEqual(skewed.calls, []);
    });
  }

  test("refuses a server that does not speak TLS", async () => {
    const plain = createServer((socket) =>
      socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n"),
    );
    const port = await new Promise<number>((resolve) => {
      plain.listen(0, "127.0.0.1", () => resolve((plain.address() as { port: number }).port));
    });
    try {
      const { stderr } = await runCommand(["get"], {
        env: { ...fake.env, FORAGE_SERVER: `127.0.0.1:${port}` },
      });
      assert.match(stderr, /does not speak gRPC over TLS/);
    } finally {
      plain.close();
    }
  });

  test("reports an unknown host name", async () => {
    const { stderr } = await runCommand(["get"], { env: { ...fake.env, FORAGE_SERVER: "nowhere.invalid" } });
    assert.match(stderr, /^forage: the name in nowhere\.invalid:7600 is unknown/);
  });

  test("reports a server that never answers", async () => {
    fake.answers.listResources = () => new Promise(() => {});
    const { exitCode, stderr } = await runCommand(["get", "--timeout", "200ms"], { env: fake.env });
    assert.equal(exitCode, 4);
    assert.match(stderr, /the time given by --timeout is over|did not answer in time/);
  });

  test("never shows a token that is refused", async () => {
    fake.answers.listResources = () => {
      throw grpcError(status.UNAUTHENTICATED, "the token is unknown or was revoked");
    };
    const { stdout, stderr } = await runCommand(["get"], { env: fake.env });
    assert.equal(
      stderr,
      `forage: ${fake.address} does not accept the token from ${fake.tokenFile}: the token is unknown or was revoked\n`,
    );
    assert.ok(!`${stdout}${stderr}`.includes(fake.token));
  });

  test("reports a CA file without a certificate", async () => {
    const { exitCode, stderr } = await runCommand(["get", "--ca-file", fake.tokenFile], { env: fake.env });
    assert.equal(exitCode, 1);
    assert.match(stderr, /^forage: the CA file .* can't be used: there is no authority to trust\n$/);
  });

  test("offers no route to pass a token on the command line", async () => {
    const { stderr } = await runCommand(["get", "--token", "x"], { env: fake.env });
    assert.match(stderr, /unknown option --token/);
  });
});

/** Forwards connections, so that a coordinator answers at an address that its certificate lacks. */
async function listen(host: string, port: number, target: string): Promise<Server> {
  const relay = createServer((socket) => {
    const upstream = connect(Number(target.split(":")[1]), "127.0.0.1");
    for (const end of [socket, upstream]) end.on("error", () => {});
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => relay.listen(port, host, resolve));
  return relay;
}
