import assert from "node:assert/strict";
import { readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { EARLIER_PROGRAM, HostOfFakes, SERVICE_IP } from "./host-of-fakes.ts";

// The test takes ten seconds of processor time, and minutes on a busy machine.
const LIMIT = { timeout: 600_000 };

/** Ways to damage a file. The middle byte of every file of the agent is relevant. */
const DAMAGES: Readonly<Record<string, (path: string) => Promise<void>>> = {
  flipped: async (path) => {
    const bytes = await readFile(path);
    const at = Math.floor(bytes.length / 2);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 0x01, at);
    await writeFile(path, bytes);
  },
  emptied: (path) => truncate(path),
  removed: (path) => rm(path),
};

/**
 * Files whose damage is not reported, because the agent doesn't decide by them: files of config maps are rewritten
 * silently, and the link reports damage to the identity's files.
 */
const UNNOTICED = [/^images\//, /^pods\//, /^identity\//, /^volumes\/disk\//];
/**
 * Reports whether a missing file is rewritten without a report: the programs of this version, and copies of programs.
 */
const isWrittenAgain = (file: string) => file.startsWith("programs/") && file !== EARLIER_PROGRAM.path;
/** Users' data, which the agent never reads. */
const DATA = /^volumes\/claims\/[^/]+\/[^/]+\/data\//;

test(
  "no single damaged file of the agent ends a container, and each damage is reported",
  LIMIT,
  async (t) => {
    const host = await HostOfFakes.make(t);
    await host.begin();
    const running = host.runtime.containers.map(({ id, pid }) => ({ id, pid }));
    const published = host.network.published.get("web");
    const endpoints = await host.envoy.endpoints();
    const settings = join(host.dataDir, "volumes/disk/plain/settings/app.conf");
    const files = (await host.files()).filter((file) => !file.endsWith(".log") && !DATA.test(file));
    for (const expected of [
      "journal/index",
      "journal.key",
      "boot-id",
      "journal/states/web.state",
      "devices/plain",
      "identity/node.pem",
      "services/services.bin",
      "gateway/gateway.sealed",
      "programs/terminal-logger",
      EARLIER_PROGRAM.path,
      "volumes/claims/default/data/claim.json",
      "volumes/claims/default/data/users/plain",
      "volumes/disk/plain/settings/..gen-1/app.conf",
    ]) {
      assert.ok(files.includes(expected), `${expected} among ${files}`);
    }
    for (const file of files) {
      for (const [how, damage] of Object.entries(DAMAGES)) {
        await host.restoreFiles();
        if ((await readFile(join(host.dataDir, file))).length === 0 && how !== "removed") continue;
        await damage(join(host.dataDir, file));

        const { noted, claimUsers } = await host.runOnce();

        const now = host.runtime.containers.filter(({ state }) => state === "running");
        assert.deepEqual(
          now.map(({ id, pid }) => ({ id, pid })),
          running,
          `${file} ${how}`,
        );
        assert.deepEqual(host.network.published.get("web"), published, `host ports, ${file} ${how}`);
        assert.ok(host.kernel.text.includes(SERVICE_IP), `services' rules, ${file} ${how}`);
        assert.equal(host.envoy.starts, 1, `Envoy, ${file} ${how}`);
        assert.equal(await host.envoy.endpoints(), endpoints, `endpoints, ${file} ${how}`);
        assert.deepEqual(claimUsers, ["plain"], `${file} ${how}`);
        assert.equal(await readFile(settings, "utf8"), "verbose = true", `${file} ${how}`);
        const earlier = await readFile(join(host.dataDir, EARLIER_PROGRAM.path), "utf8");
        assert.equal(earlier, EARLIER_PROGRAM.text, `${file} ${how}`);
        const isQuiet = how === "removed" && isWrittenAgain(file);
        if (!isQuiet && !UNNOTICED.some((pattern) => pattern.test(file)))
          assert.notEqual(noted, undefined, `${file} ${how}`);
      }
    }
  },
);
