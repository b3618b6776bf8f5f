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
  test("a coordinator that another authority vouches for gets no token", async () => {
    const { exitCode, stderr } = await runCommand(["get"], {
      env: { ...fake.env, FORAGE_SERVER: other.address },
    });
    assert.equal(exitCode, 1);
    assert.equal(
      stderr,
      `forage: ${other.address} is not vouched for by the CA in ${fake.caFile}: take the CA file of this coordinator (--ca-file)\n`,
    );
    assert.deepEqual(other.calls, []);
  });

  test("a certificate for other names", async () => {
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
    test(`${what}: the clocks are named, not the CA file`, async (t) => {
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

  test("something that speaks no TLS", async () => {
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

  test("an unknown name", async () => {
    const { stderr } = await runCommand(["get"], { env: { ...fake.env, FORAGE_SERVER: "nowhere.invalid" } });
    assert.match(stderr, /^forage: the name in nowhere\.invalid:7600 is unknown/);
  });

  test("one that never answers", async () => {
    fake.answers.listResources = () => new Promise(() => {});
    const { exitCode, stderr } = await runCommand(["get", "--timeout", "200ms"], { env: fake.env });
    assert.equal(exitCode, 4);
    assert.match(stderr, /the time given by --timeout is over|did not answer in time/);
  });

  test("a token that isn't accepted is never shown", async () => {
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

  test("a CA file that holds no certificate", async () => {
    const { exitCode, stderr } = await runCommand(["get", "--ca-file", fake.tokenFile], { env: fake.env });
    assert.equal(exitCode, 1);
    assert.match(stderr, /^forage: the CA file .* can't be used: there is no authority to trust\n$/);
  });

  test("there is no way to give a token on the command line", async () => {
    const { stderr } = await runCommand(["get", "--token", "x"], { env: fake.env });
    assert.match(stderr, /unknown option --token/);
  });
});

/** Passes connections on, so that a coordinator answers at an address that its certificate lacks. */
async function listen(host: string, port: number, target: string): Promise<Server> {
  const relay = createServer((socket) => {
    const upstream = connect(Number(target.split(":")[1]), "127.0.0.1");
    for (const end of [socket, upstream]) end.on("error", () => {});
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => relay.listen(port, host, resolve));
  return relay;
}
