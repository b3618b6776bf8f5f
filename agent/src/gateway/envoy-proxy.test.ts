import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeEnvoy } from "../../test/fake-envoy.ts";
import { testProxyProgram } from "../../test/proxy-program-contract.ts";
import { systemClock } from "../clock.ts";
import { EnvoyPaths } from "./envoy/envoy-paths.ts";
import { EnvoyProxy, type Launcher } from "./envoy-proxy.ts";

/** Starts a shell instead of Envoy, with the same arguments. */
const SHELL: Launcher = {
  name: "sh",
  start: async (args, _log, ended) => {
    const child = spawn("sh", ["-c", "while :; do sleep 1; done", "sh", ...args], { stdio: "ignore" });
    child.once("exit", ended);
    await once(child, "spawn");
  },
  remove: async () => {},
};

testProxyProgram("a process of this host", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-envoy-proxy-"));
  const [bootstrap, log] = [join(dir, "bootstrap.json"), join(dir, "envoy.log")];
  const connect = () => new EnvoyProxy({ launcher: SHELL, bootstrap, log, clock: systemClock });
  t.after(async () => {
    await connect().kill();
    rmSync(dir, { recursive: true });
  });
  return connect;
});

testProxyProgram("the fake", async () => {
  const envoy = new FakeEnvoy(new EnvoyPaths("/nonexistent"));
  return () => envoy;
});
