import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { run } from "../../hack/lib/run.ts";
import { giveToGroup } from "../src/volumes/group-ownership.ts";
import { VolumeError, type VolumeErrorCode } from "../src/volumes/volumes.ts";
import { enterOwnMounts, whyNoOwnMounts } from "./own-mounts.ts";
import { aMount, aPod, files, MIB, VolumeHost } from "./volume-host.ts";

const obstacle = whyNoOwnMounts();
const parent = obstacle === undefined ? enterOwnMounts() : "";
const options = { skip: obstacle ?? false, timeout: 120_000 };
const signal = new AbortController().signal;

const DISK = { type: "emptyDir", medium: "disk" } as const;
const GROUP = 2000;
// Both outcomes of a race appear within a few dozen tries, except on a very busy machine.
const TRIES_MAX = 2_000;

interface Scene {
  readonly host: VolumeHost;
  /** The volume's directory, as a container uses it. */
  readonly volume: string;
  /** A directory outside all volumes. */
  readonly outside: string;
  /** Mounts this path of the volume for one container, and returns its path on the host. */
  pin(subPath: string): Promise<string>;
}

async function aScene(t: TestContext, limited: boolean): Promise<Scene> {
  const host = await VolumeHost.setUp(t, parent);
  const volumes = await host.start();
  const outside = join(host.directory, "outside");
  mkdirSync(join(outside, "inner"), { recursive: true });
  for (const path of ["witness", "inner/witness"]) writeFileSync(join(outside, path), "", { mode: 0o600 });
  await volumes.prepare(
    aPod("a", { data: { ...DISK, ...(limited && { sizeLimitBytes: 4 * MIB }) } }),
    signal,
  );
  const bind = async (subPath: string) => {
    const [first] = await volumes.binds("a", "web", [aMount("data", { subPath })], signal);
    return first?.source ?? assert.fail();
  };
  return { host, volume: await bind(""), outside, pin: bind };
}

/** Runs the attack during `work` and ends it afterwards, because volumes are released after their containers. */
async function underAttack(
  volume: string,
  name: string,
  outside: string,
  work: () => Promise<void>,
): Promise<void> {
  const script = join(import.meta.dirname, "hostile-container.ts");
  const child = fork(script, [volume, name, outside], { execArgv: [] });
  try {
    await once(child, "message");
    await work();
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
}

function failsWith(code: VolumeErrorCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof VolumeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };
}

for (const limited of [false, true]) {
  const where = limited ? "on a file system of its own" : "on the host's";

  test(`does not follow links that lead out of a volume ${where}`, options, async (t) => {
    const { host, volume, outside, pin } = await aScene(t, limited);
    const up = "../".repeat(volume.split("/").length);
    const links: Readonly<Record<string, string>> = {
      absolute: outside,
      relative: `${up}${outside.slice(1)}`,
      file: join(outside, "witness"),
      root: "/",
      parent: "..",
      own: `/proc/self/cwd`,
      twice: "absolute",
      data: host.dataDir,
    };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(volume, name));
    for (const name of Object.keys(links)) {
      await assert.rejects(
        pin(name),
        failsWith("ESCAPES", new RegExp(`sub_path ${name} leads out of the volume`)),
        name,
      );
    }
    await assert.rejects(pin("absolute/inner"), failsWith("ESCAPES", /sub_path absolute\/inner/));
    for (const subPath of ["absolute/new", "absolute/new/deeper", "relative/new"]) {
      await assert.rejects(pin(subPath), failsWith("ESCAPES", /leads out/), subPath);
    }
    assert.deepEqual(readdirSync(outside).sort(), ["inner", "witness"], "nothing is made out there");
    assert.equal(host.mounts().filter((path) => path.includes("/pin/")).length, 0);
  });

  test(`finds an existing path of a volume and creates a missing one: ${where}`, options, async (t) => {
    const { volume, pin } = await aScene(t, limited);
    mkdirSync(join(volume, "there/deep"), { recursive: true });
    writeFileSync(join(volume, 'there/file, odd: "name"\n'), "text");
    symlinkSync("there/deep", join(volume, "link"));
    symlinkSync("../there", join(volume, "there/back"));
    chmodSync(volume, 0o2775);
    const isSame = (pinned: string, path: string) =>
      assert.equal(statSync(pinned).ino, statSync(join(volume, path)).ino, path);
    for (const path of [
      "there",
      "there/deep",
      "link",
      "there/back/deep",
      "there//./deep/",
      "new",
      "one/two/three/four",
    ]) {
      isSame(await pin(path), path);
    }
    assert.equal(readFileSync(await pin('there/file, odd: "name"\n'), "utf8"), "text");
    isSame(await pin("there/deep"), "there/deep");
    assert.equal(statSync(join(volume, "one/two")).mode & 0o777, 0o775, "as the volume's root");
    await assert.rejects(pin('there/file, odd: "name"\n/x'), failsWith("WRONG_TYPE", /Not a directory/));
    symlinkSync("loop", join(volume, "loop"));
    await assert.rejects(pin("loop"), failsWith("WRONG_TYPE", /symbolic links/));
    symlinkSync("nowhere", join(volume, "dangling"));
    await assert.rejects(pin("dangling"), (error) => error instanceof VolumeError);
  });
}

test("a pinned path stays pinned when its name is replaced", options, async (t) => {
  const { volume, outside, pin } = await aScene(t, false);
  mkdirSync(join(volume, "x"));
  writeFileSync(join(volume, "x/mine"), "");
  const pinned = await pin("x");
  renameSync(join(volume, "x"), join(volume, "y"));
  symlinkSync(outside, join(volume, "x"));
  assert.deepEqual(readdirSync(pinned), ["mine"]);
});

test("a link that is exchanged at the worst moment never leads out", options, async (t) => {
  const { volume, outside, pin } = await aScene(t, false);
  mkdirSync(join(volume, "x/inner"), { recursive: true });
  const seen = { pinned: 0, refused: 0 };
  await underAttack(volume, "x", outside, async () => {
    for (let tries = 0; tries < TRIES_MAX && (tries < 60 || Object.values(seen).includes(0)); tries += 1) {
      try {
        const pinned = await pin("x/inner");
        assert.ok(!existsSync(join(pinned, "witness")), "the outside is in the container");
        seen.pinned += 1;
      } catch (error) {
        if (!(error instanceof VolumeError)) throw error;
        if (error.code === "ESCAPES") seen.refused += 1;
      }
    }
  });
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.pinned > 0 && seen.refused > 0, "the attack never hit");
});

test("never creates directories outside, whatever is exchanged meanwhile", options, async (t) => {
  const { volume, outside, pin } = await aScene(t, false);
  const seen = { made: 0, refused: 0 };
  await underAttack(volume, "x", outside, async () => {
    for (let tries = 0; tries < TRIES_MAX && (tries < 60 || Object.values(seen).includes(0)); tries += 1) {
      try {
        await pin(`x/new-${tries}/deeper`);
        seen.made += 1;
      } catch (error) {
        if (!(error instanceof VolumeError)) throw error;
        if (error.code === "ESCAPES") seen.refused += 1;
      }
      assert.deepEqual(readdirSync(outside).sort(), ["inner", "witness"]);
    }
  });
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.made > 0 && seen.refused > 0, "the attack never hit");
});

test("sub-paths of secrets are files of the newest version", options, async (t) => {
  const host = await VolumeHost.setUp(t, parent);
  const volumes = await host.start();
  const pod = (text: string) => aPod("a", { secret: files({ "app.conf": text }, { secret: true }) });
  const mounts = [
    aMount("secret", { subPath: "app.conf" }),
    aMount("secret", { subPath: "nothing", mountPath: "/x" }),
  ];
  await volumes.prepare(pod("1"), signal);
  const [bind] = await volumes.binds("a", "web", mounts.slice(0, 1), signal);
  await volumes.update(pod("2"), signal);
  assert.equal(
    readFileSync(bind?.source ?? "", "utf8"),
    "1",
    "as in Kubernetes, a file that is mounted alone stays",
  );
  const [again] = await volumes.binds("a", "web", mounts.slice(0, 1), signal);
  assert.equal(readFileSync(again?.source ?? "", "utf8"), "2");
  await assert.rejects(
    volumes.binds("a", "web", mounts, signal),
    failsWith("SOURCE_MISSING", /sub_path nothing doesn't exist/),
  );
});

test(
  "fs_group: everything becomes the group's, including new files, and links stay links",
  options,
  async (t) => {
    const { volume, outside } = await aScene(t, true);
    mkdirSync(join(volume, "d/e"), { recursive: true });
    const name = Buffer.concat([Buffer.from(`${volume}/d/`), Buffer.from([0xff, 0x0a, 0x20, 0xc3, 0xa4])]);
    writeFileSync(name, "", { mode: 0o400 });
    writeFileSync(join(volume, "d/e/setuid"), "");
    chownSync(join(volume, "d/e/setuid"), 1000, 1000);
    chmodSync(join(volume, "d/e/setuid"), 0o4711);
    symlinkSync(join(outside, "witness"), join(volume, "d/out"));
    await giveToGroup(volume, { gid: GROUP, changePolicy: "Always" }, signal);
    const shapeOf = (path: string | Buffer) => {
      const { uid, gid, mode } = statSync(path);
      return [uid, gid, (mode & 0o7777).toString(8)];
    };
    assert.deepEqual(shapeOf(volume), [0, GROUP, "2777"]);
    assert.deepEqual(shapeOf(join(volume, "d")), [0, GROUP, "2775"]);
    assert.deepEqual(shapeOf(name), [0, GROUP, "660"]);
    assert.deepEqual(shapeOf(join(volume, "d/e/setuid")), [1000, GROUP, "771"]);
    assert.deepEqual(shapeOf(join(outside, "witness")), [0, 0, "600"]);
    await run("setpriv", ["--reuid=1000", "--regid=1000", `--groups=${GROUP}`, "true"]);
    writeFileSync(join(volume, "d/new"), "");
    assert.equal(statSync(join(volume, "d/new")).gid, GROUP);
  },
);

test("fs_group: OnRootMismatch checks only the root, Always checks every file", options, async (t) => {
  const { volume } = await aScene(t, false);
  await giveToGroup(volume, { gid: GROUP, changePolicy: "OnRootMismatch" }, signal);
  writeFileSync(join(volume, "late"), "", { mode: 0o600 });
  chownSync(join(volume, "late"), 0, 0);
  await giveToGroup(volume, { gid: GROUP, changePolicy: "OnRootMismatch" }, signal);
  assert.equal(statSync(join(volume, "late")).gid, 0);
  await giveToGroup(volume, { gid: GROUP, changePolicy: "Always" }, signal);
  assert.equal(statSync(join(volume, "late")).gid, GROUP);
  await giveToGroup(volume, { gid: GROUP + 1, changePolicy: "OnRootMismatch" }, signal);
  assert.equal(statSync(join(volume, "late")).gid, GROUP + 1);
  await assert.rejects(
    giveToGroup(volume, { gid: 1, changePolicy: "Always" }, AbortSignal.abort()),
    failsWith("ABORTED", /aborted/),
  );
});

test(
  "fs_group: a link that is replaced during the change of owners affects no file outside",
  options,
  async (t) => {
    const { volume, outside } = await aScene(t, false);
    mkdirSync(join(volume, "x/inner"), { recursive: true });
    for (const path of ["file", "x/inner/witness"]) writeFileSync(join(volume, path), "");
    const groups = new Set<number>();
    await underAttack(volume, "x", outside, async () => {
      for (let tries = 0; tries < 300; tries += 1) {
        await giveToGroup(volume, { gid: GROUP + (tries % 2), changePolicy: "Always" }, signal);
        for (const path of ["inner", "witness", "inner/witness"]) {
          const { gid, mode } = statSync(join(outside, path));
          assert.deepEqual([gid, mode & 0o7777], [0, path === "inner" ? 0o755 : 0o600], path);
        }
        groups.add(statSync(join(volume, "file")).gid);
      }
    });
    assert.deepEqual([...groups], [GROUP, GROUP + 1]);
  },
);
