import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { copyDependencies, ensureHostImage } from "../lab-hosts/host-image.ts";
import { driverFor, limitFor, missingForLab, STAND_IN_KIND, testedKinds } from "../lab-hosts/host-kinds.ts";
import { usePackages } from "../lab-hosts/install-fleet.ts";
import { Lab } from "../lab-hosts/lab.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { labPaths } from "../lab-hosts/lab-state.ts";
import { writePackageIndex } from "../lab-hosts/package-repository.ts";
import { run } from "../lib/run.ts";
import { type ClaimedLab, claimLab } from "../system/claim-lab.ts";
import { LETTER } from "../system/stand-in-vagrant-plan.ts";

/** The contract of HostDriver, on bare hosts. */

const HOSTS = ["h1", "h2", "h3"];
/** Words that a shell would change. */
const WORDS = ["a b", "$(id)", "`id`", "it's", '"', "\\", "*", "", "--", "-x", "$HOME", "; id", "\n"];
const STAND_IN = join(import.meta.dirname, "../system/stand-in-vagrant.ts");

const kinds = testedKinds(process.env);
for (const kind of kinds) testContract(kind, kind, missingForLab(kind, process.env));
// Without a provider, a stand-in for Vagrant makes the machines.
if (!kinds.includes("vagrant"))
  testContract(
    "vagrant",
    "vagrant, with a stand-in",
    missingForLab(STAND_IN_KIND, process.env),
    replaceVagrant,
  );

function testContract(
  kind: string,
  title: string,
  skip: string | false,
  prepare?: () => Promise<() => Promise<void>>,
): void {
  const limit = limitFor(kind);
  describe(`the driver of hosts (${title})`, { concurrency: false, skip }, () => {
    let claimed: ClaimedLab;
    let lab: Lab;
    let restore: (() => Promise<void>) | undefined;

    const close = async (): Promise<void> => {
      await claimed?.release();
      await restore?.();
    };
    const boot = async (): Promise<void> => {
      restore = await prepare?.();
      claimed = await claimLab();
      const driver = driverFor(kind, claimed.name);
      await driver.prepare(() => {});
      const hosts = planHosts({ count: HOSTS.length, coordinatorOwnHost: false, gateway: driver.gateway });
      lab = await Lab.create(claimed.name, kind, hosts);
      copyDependencies(await ensureHostImage(() => {}), lab.path("packages"));
      await writePackageIndex(lab.path("packages"));
      await Promise.all(HOSTS.map((name) => lab.boot(name)));
      for (const host of lab.hosts) {
        await usePackages(lab, host);
        await lab.exec(host.name, ["apt-get", "-qq", "--yes", "install", "nftables"]);
      }
    };
    // If the first hook of a suite fails, its last one does not run.
    before(() => boot().catch((error: unknown) => close().then(() => Promise.reject(error))), limit);
    after(close, limit);

    const printed = async (name: string, ...argv: readonly string[]): Promise<string> =>
      (await lab.exec(name, argv)).stdout;
    const reaches = async (from: string, to: string): Promise<boolean> => {
      const ping = ["ping", "-n", "-c", "1", "-W", "2", lab.host(to).address];
      return (await lab.exec(from, ping, { allowFailure: true })).exitCode === 0;
    };
    /** Returns the pairs of hosts of which one can reach the other. */
    const pairs = async (): Promise<readonly string[]> => {
      const all = HOSTS.flatMap((from) => HOSTS.map((to) => [from, to] as const)).filter(([a, b]) => a !== b);
      const found: string[] = [];
      for (const [from, to] of all) if (await reaches(from, to)) found.push(`${from}-${to}`);
      return found;
    };

    test("programs run as root, with their words, input and exit code", limit, async () => {
      const words = WORDS.map((word) => `<${word}>`).join("");
      assert.equal(await printed("h1", "printf", "<%s>", ...WORDS), words);
      assert.equal(await printed("h2", "sh", "-c", "id -u; pwd; hostname"), "0\n/root\nh2\n");
      assert.equal((await lab.exec("h1", ["cat"], { input: "in\n" })).stdout, "in\n");
      const { exitCode, stderr } = await lab.exec("h1", ["sh", "-c", "echo why >&2; exit 7"], {
        allowFailure: true,
      });
      assert.deepEqual({ exitCode, stderr }, { exitCode: 7, stderr: "why\n" });
      const { address } = lab.host("h3");
      assert.match(await printed("h3", "ip", "-4", "-oneline", "address"), new RegExp(`${address}/24`));
    });

    test("files are copied, and later packages are available", limit, async (t) => {
      const dir = mkdtempSync(join(tmpdir(), "forage-driver-"));
      t.after(() => rmSync(dir, { recursive: true, force: true }));
      writeFileSync(join(dir, "file"), "content\n");
      const to = "/srv/it's a $(directory)/file";
      await lab.copy("h1", join(dir, "file"), to);
      assert.equal(await printed("h1", "cat", to), "content\n");
      writeFileSync(join(lab.path("packages"), "later"), "later\n");
      await lab.syncPackages();
      for (const name of HOSTS)
        assert.equal(await printed(name, "cat", "/srv/forage-packages/later"), "later\n");
    });

    test(
      "hosts that are cut off only reach each other, also after a reboot, until they are healed",
      limit,
      async () => {
        const all = ["h1-h2", "h1-h3", "h2-h1", "h2-h3", "h3-h1", "h3-h2"];
        assert.deepEqual(await pairs(), all);
        await lab.partition(["h1"]);
        assert.deepEqual(await pairs(), ["h2-h3", "h3-h2"]);
        await lab.partition(["h2"]);
        assert.deepEqual(await pairs(), ["h1-h2", "h2-h1"]);
        await printed("h1", "sh", "-c", "touch /run/mark /srv/mark && sync");
        await lab.reboot("h1");
        assert.equal(await printed("h1", "sh", "-c", "ls /run/mark /srv/mark || true"), "/srv/mark\n");
        assert.deepEqual(await pairs(), ["h1-h2", "h2-h1"]);
        await lab.heal();
        assert.deepEqual(await pairs(), all);
      },
    );

    test("a host without power runs nothing, and boots again with its disk", limit, async () => {
      await printed("h2", "sh", "-c", "echo kept > /srv/kept && sync");
      await lab.powerOff("h2");
      assert.deepEqual(
        (await lab.running()).map(({ name }) => name),
        ["h1", "h3"],
      );
      await assert.rejects(async () => lab.exec("h2", ["true"]), { code: "NOT_READY" });
      assert.throws(() => lab.driver.terminalCommand(lab.host("h2"), ["true"]), { code: "NOT_READY" });
      await lab.boot("h2");
      assert.equal(await printed("h2", "cat", "/srv/kept"), "kept\n");
      await lab.powerOff("h2");
      await lab.powerOff("h2");
    });

    test("a host boots while the link of its former boot still exists", {
      ...limit,
      skip: kind !== "nspawn" && "only nspawn makes the links of hosts itself",
    }, async () => {
      await lab.shutDown("h2");
      const [file = "", ...args] = lab.besideCommand(["ip", "link", "add", "vb-h2", "type", "bridge"]);
      await run(file, args);
      await lab.boot("h2");
      assert.ok(await reaches("h2", "h1"));
    });

    test("the network of a host is slowed down, or that is refused with the reason", limit, async () => {
      try {
        await lab.slow("h1", { delayMs: 200, lossPercent: 0 });
      } catch (error) {
        assert.match(String(error), /can't be slowed down/);
        return;
      }
      const [, ms] =
        /time=([\d.]+)/.exec(await printed("h1", "ping", "-n", "-c", "1", lab.host("h3").address)) ?? [];
      assert.ok(Number(ms) >= 200);
      await lab.heal();
    });

    test("removal leaves nothing, and can be repeated", limit, async () => {
      await Lab.remove(claimed.name);
      assert.equal(existsSync(labPaths(claimed.name).dir), false);
      await Lab.remove(claimed.name);
      assert.throws(() => Lab.open(claimed.name), { code: "NOT_READY" });
    });
  });
}

/**
 * Puts the stand-in before Vagrant in the PATH. Returns a function that reverts this. Its machines are removed with
 * this process's labs.
 */
async function replaceVagrant(): Promise<() => Promise<void>> {
  const machines = await claimLab(LETTER);
  const { PATH = "" } = process.env;
  const dir = mkdtempSync(join(tmpdir(), "forage-vagrant-"));
  const program = join(dir, "vagrant");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${STAND_IN}' "$@"\n`);
  chmodSync(program, 0o755);
  process.env.PATH = `${dir}:${PATH}`;
  return async () => {
    process.env.PATH = PATH;
    await machines.release();
    rmSync(dir, { recursive: true, force: true });
  };
}
