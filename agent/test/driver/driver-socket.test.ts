import assert from "node:assert/strict";
import { existsSync, linkSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type HealthCheckResponse, HealthClient } from "@forage/proto/grpc/health/v1/health";
import { type CapabilitiesResponse, DriverClient } from "@forage/proto/plugins/drivers/proto/driver";
import { ChannelCredentials } from "@grpc/grpc-js";
import { systemClock } from "../../src/clock.ts";
import { DriverSocket } from "../../src/driver/driver-socket.ts";
import { call } from "./plugin-client.ts";

function socketIn(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-driver-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "run", "driver.sock");
  const open = (): Promise<DriverSocket> =>
    DriverSocket.open({
      path,
      places: {
        containerdAddress: join(dir, "containerd.sock"),
        nerdctl: "/bin/false",
        cniBinDir: dir,
        dataDir: join(dir, "data"),
        runDir: join(dir, "state"),
      },
      version: "0.1.0",
      clock: systemClock,
      log: () => undefined,
    });
  return { path, open };
}

test("serves the Driver service to its own user only, replacing a socket that a killed agent left", async (t) => {
  const { path, open } = socketIn(t);
  await (await open()).close();
  assert.equal(existsSync(path), false);
  // The second name of the socket remains when the listener ends, like the socket of a killed process.
  const left = createServer().listen(`${path}.1`);
  await new Promise((resolve) => left.once("listening", resolve));
  linkSync(`${path}.1`, path);
  await assert.rejects(open(), /another process serves the driver's socket/);
  await new Promise((resolve) => left.close(resolve));
  assert.equal(existsSync(path), true);

  const socket = await open();
  t.after(() => socket.close());
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const client = new DriverClient(`unix:${path}`, ChannelCredentials.createInsecure());
  const health = new HealthClient(`unix:${path}`, ChannelCredentials.createInsecure());
  t.after(() => {
    client.close();
    health.close();
  });
  const { status } = await call<HealthCheckResponse>((done) => health.check({ service: "" }, done));
  assert.equal(status, 1);
  const { capabilities } = await call<CapabilitiesResponse>((done) => client.capabilities({}, done));
  assert.equal(capabilities?.exec, true);
});
