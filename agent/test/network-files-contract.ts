import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { NetworkFiles, NetworkFilesContainer } from "../src/network/network-files.ts";
import { PLAIN_SECURITY } from "./runtime-contract.ts";

const POD = { uid: "u1", namespace: "shop", hostname: "web-1" };
const IPS = ["10.64.0.2"];

/** Tests the contract of NetworkFiles. `open` creates separate files for each test. */
export function testNetworkFiles(name: string, open: (t: TestContext) => Promise<NetworkFiles>): void {
  const check = (what: string, run: (files: NetworkFiles) => Promise<void>) =>
    test(`${name}: ${what}`, async (t) => run(await open(t)));

  check("binds both files at the same paths each time, and each container has its own", async (files) => {
    const binds = await files.binds(POD, { name: "main" }, IPS);
    assert.deepEqual(binds.map(({ target }) => target).sort(), ["/etc/hosts", "/etc/resolv.conf"]);
    assert.deepEqual(await files.binds(POD, { name: "main" }, IPS), binds);
    const others = await files.binds(POD, { name: "side" }, IPS);
    const sources = new Set([...binds, ...others].map(({ source }) => source));
    assert.equal(sources.size, 4);
  });

  check("leaves out files that the container mounts itself", async (files) => {
    const mount = { volume: "v", mountPath: "/etc/hosts", subPath: "", readOnly: false };
    const binds = await files.binds(POD, { name: "main", mounts: [mount] }, IPS);
    assert.deepEqual(
      binds.map(({ target }) => target),
      ["/etc/resolv.conf"],
    );
  });

  check("is read-only exactly for containers with a read-only root or a limit", async (files) => {
    const isReadOnly = async (container: NetworkFilesContainer): Promise<boolean[]> =>
      (await files.binds(POD, container, IPS)).map(({ readOnly }) => readOnly);
    assert.deepEqual(await isReadOnly({ name: "main" }), [false, false]);
    assert.deepEqual(await isReadOnly({ name: "limited", rootLimitBytes: 1 }), [true, true]);
    const security = { ...PLAIN_SECURITY, readOnlyRootFilesystem: true };
    assert.deepEqual(await isReadOnly({ name: "sealed", security }), [true, true]);
  });
}
