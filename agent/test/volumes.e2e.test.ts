import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { open, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { run } from "../../hack/lib/run.ts";
import { mountAt, readMountTable } from "../src/volumes/mount-table.ts";
import { VolumeError, type VolumeErrorCode, type VolumeSource } from "../src/volumes/volumes.ts";
import { enterOwnMounts, whyNoOwnMounts } from "./own-mounts.ts";
import { until } from "./until.ts";
import { aMount, aPod, files, MIB, VolumeHost } from "./volume-host.ts";
import { testPodVolumes } from "./volumes-contract.ts";

const obstacle = whyNoOwnMounts();
const parent = obstacle === undefined ? enterOwnMounts() : "";
const options = { skip: obstacle ?? false, timeout: 120_000 };
const signal = new AbortController().signal;

if (obstacle === undefined) testPodVolumes("host", (t) => VolumeHost.setUp(t, parent));

const DISK = { type: "emptyDir", medium: "disk" } as const;
const MEMORY = { type: "emptyDir", medium: "memory" } as const;

async function onHost(t: TestContext, change: Parameters<typeof VolumeHost.setUp>[2] = {}) {
  const host = await VolumeHost.setUp(t, parent, change);
  return { host, volumes: await host.start() };
}

/** Returns the path of the pod's volume on the host. */
async function sourceOf(
  volumes: Awaited<ReturnType<VolumeHost["start"]>>,
  uid: string,
  volume: string,
  subPath = "",
) {
  const [bind] = await volumes.binds(uid, "web", [aMount(volume, { subPath })], signal);
  return bind?.source ?? assert.fail();
}

/** Writes until it fails or everything is written. Returns the number of bytes on disk. */
async function writeUpTo(
  path: string,
  bytes: number,
): Promise<{ written: number; code: string | undefined }> {
  const file = await open(path, "w");
  const chunk = Buffer.alloc(MIB / 4, 1);
  let written = 0;
  try {
    while (written < bytes) written += (await file.write(chunk)).bytesWritten;
    await file.sync();
    return { written, code: undefined };
  } catch (error) {
    return { written, code: (error as NodeJS.ErrnoException).code };
  } finally {
    await file.close();
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

test("an empty directory is writable for everyone, and is removed with its pod", options, async (t) => {
  const { host, volumes } = await onHost(t);
  await volumes.prepare(aPod("a", { scratch: DISK }), signal);
  const path = await sourceOf(volumes, "a", "scratch");
  assert.equal(statSync(path).mode & 0o7777, 0o777);
  assert.deepEqual(readdirSync(path), []);
  await run("setpriv", ["--reuid=1000", "--regid=1000", "--clear-groups", "true"]);
  mkdirSync(join(path, "deep/er"), { recursive: true });
  symlinkSync(host.directory, join(path, "out"));
  writeFileSync(join(host.directory, "witness"), "");
  await volumes.release("a", signal);
  assert.deepEqual(await host.settled(), []);
  assert.ok(existsSync(join(host.directory, "witness")), "links aren't followed");
});

test(
  "a size limit is enforced to the byte's worth of a block, for each pod by itself",
  options,
  async (t) => {
    const { host, volumes } = await onHost(t);
    for (const sizeLimitBytes of [MIB, 16 * MIB, 100 * MIB]) {
      const pod = aPod("a", { scratch: { ...DISK, sizeLimitBytes } });
      await volumes.prepare(pod, signal);
      const path = await sourceOf(volumes, "a", "scratch");
      assert.deepEqual(readdirSync(path), [], "no lost+found");
      assert.equal(statSync(path).mode & 0o7777, 0o777);
      const fits = await writeUpTo(join(path, "fits"), sizeLimitBytes - MIB / 4);
      assert.equal(fits.code, undefined);
      const tooMuch = await writeUpTo(join(path, "more"), sizeLimitBytes);
      assert.equal(tooMuch.code, "ENOSPC");
      const total = fits.written + tooMuch.written;
      assert.ok(total <= sizeLimitBytes * 1.05 + MIB / 2, `${total} of ${sizeLimitBytes}`);
      await volumes.prepare(pod, signal);
      assert.ok(existsSync(join(path, "fits")), "preparing again keeps what is there");
      await volumes.release("a", signal);
      assert.deepEqual(await host.settled(), []);
    }
  },
);

test("a limited volume uses no space before it is written to, and returns it", options, async (t) => {
  const { host, volumes } = await onHost(t);
  await volumes.prepare(aPod("a", { scratch: { ...DISK, sizeLimitBytes: 1024 * MIB } }), signal);
  const path = await sourceOf(volumes, "a", "scratch");
  const used = () => statSync(join(host.dataDir, "disk/a/scratch.img")).blocks * 512;
  assert.ok(used() < 2 * MIB, `${used()}`);
  await writeUpTo(join(path, "big"), 50 * MIB);
  assert.ok(used() > 50 * MIB);
  rmSync(join(path, "big"));
  await run("sync", ["-f", path]);
  await until("the room is given back", () => used() < 10 * MIB);
});

test("a memory volume is a tmpfs of the requested size", options, async (t) => {
  const { host, volumes } = await onHost(t);
  await volumes.prepare(aPod("a", { cache: { ...MEMORY, sizeLimitBytes: 2 * MIB }, all: MEMORY }), signal);
  const path = await sourceOf(volumes, "a", "cache");
  assert.equal(mountAt(await readMountTable(), path)?.type, "tmpfs");
  assert.equal(statSync(path).mode & 0o7777, 0o777);
  assert.equal((await writeUpTo(join(path, "x"), 4 * MIB)).code, "ENOSPC");
  const { blocks, bsize } = await statfs(await sourceOf(volumes, "a", "all"));
  assert.ok(blocks * bsize > 100 * MIB);
  await volumes.release("a", signal);
  assert.deepEqual(await host.settled(), []);
});

test(
  "a new agent finds all volumes unchanged, and after a reboot those on disk are restored",
  options,
  async (t) => {
    const { host, volumes } = await onHost(t);
    const secret = files({ password: "s3cret" }, { secret: true });
    const claim: VolumeSource = {
      type: "claim",
      namespace: "shop",
      claim: "db",
      capacityBytes: 8 * MIB,
      readOnly: false,
    };
    const pod = aPod("a", {
      scratch: { ...DISK, sizeLimitBytes: 8 * MIB },
      cache: MEMORY,
      plain: DISK,
      claim,
      secret,
    });
    await volumes.prepare(pod, signal);
    const names = ["scratch", "cache", "plain", "claim"];
    for (const name of names) writeFileSync(join(await sourceOf(volumes, "a", name), "kept"), name);
    const before = host.mounts();

    const next = await host.start(["a"]);
    await next.prepare(pod, signal);
    assert.deepEqual(host.mounts(), before);
    for (const name of names) assert.ok(existsSync(join(await sourceOf(next, "a", name), "kept")), name);

    await host.reboot();
    assert.deepEqual(host.mounts(), []);
    const rebooted = await host.start(["a"]);
    await rebooted.prepare(pod, signal);
    for (const name of names) {
      const kept = existsSync(join(await sourceOf(rebooted, "a", name), "kept"));
      assert.equal(kept, name !== "cache", name);
    }
    assert.equal(readFileSync(join(await sourceOf(rebooted, "a", "secret"), "password"), "utf8"), "s3cret");
    assert.equal((await host.settledDevices(2)).length, 2);
    await rebooted.release("a", signal);
    assert.deepEqual(await host.settled(), []);
  },
);

test(
  "a scratch volume that a crash destroyed is made again; a claim waits for the operator",
  options,
  async (t) => {
    const { host, volumes } = await onHost(t);
    const claim: VolumeSource = {
      type: "claim",
      namespace: "shop",
      claim: "db",
      capacityBytes: 8 * MIB,
      readOnly: false,
    };
    const scratch = aPod("a", { scratch: { ...DISK, sizeLimitBytes: 8 * MIB } });
    const database = aPod("b", { data: claim });
    await volumes.prepare(scratch, signal);
    await volumes.prepare(database, signal);
    await host.reboot();
    const images = ["disk/a/scratch.img", "claims/shop/db/data.img"].map((it) => join(host.dataDir, it));
    for (const image of images) {
      const size = statSync(image).size;
      truncateSync(image, 0);
      truncateSync(image, size);
    }
    const next = await host.start(["a", "b"]);
    await next.prepare(scratch, signal);
    assert.deepEqual(readdirSync(await sourceOf(next, "a", "scratch")), []);
    assert.match(host.warnings.join(), /scratch-volume-made-anew/);
    await assert.rejects(
      next.prepare(database, signal),
      failsWith("DAMAGED", /volume data: claim shop\/db: .*e2fsck by hand/),
    );
  },
);

test("secrets are on tmpfs only, with their modes, readable by the pod's group", options, async (t) => {
  const { host, volumes } = await onHost(t);
  const items = [
    { key: "password", path: "db/password", mode: 0o400 },
    { key: "user", path: "user", mode: 0 },
  ];
  const secret = files({ password: "s3cret", user: "anna" }, { secret: true, items, defaultMode: 0o640 });
  const fsGroup = { gid: 2000, changePolicy: "Always" } as const;
  await volumes.prepare(aPod("a", { secret }, { fsGroup }), signal);
  const path = await sourceOf(volumes, "a", "secret");
  assert.equal(mountAt(await readMountTable(), join(host.dataDir, "memory"))?.type, "tmpfs");
  assert.ok(path.startsWith(join(host.dataDir, "memory/")));
  const statOf = (name: string) => {
    const { mode, uid, gid } = statSync(join(path, name));
    return [(mode & 0o7777).toString(8), uid, gid];
  };
  assert.deepEqual(statOf("db/password"), ["440", 0, 2000]);
  assert.deepEqual(statOf("user"), ["640", 0, 2000]);
  // The parent directories are closed, so the file is read through a separate mount, as in a container.
  const inside = join(host.directory, "inside");
  mkdirSync(inside);
  await run("mount", ["--bind", path, inside]);
  chmodSync(host.directory, 0o755);
  const asUser = (...groups: string[]) => [
    "--reuid=1000",
    "--regid=1000",
    ...groups,
    "cat",
    join(inside, "db/password"),
  ];
  assert.equal((await run("setpriv", asUser("--groups=2000"))).stdout, "s3cret");
  await assert.rejects(run("setpriv", asUser("--clear-groups")));
  await volumes.update(
    aPod("a", { secret: files({ password: "new", user: "anna" }, { secret: true, items }) }, { fsGroup }),
    signal,
  );
  assert.equal(readFileSync(join(inside, "db/password"), "utf8"), "new", "running containers see it");
  await run("umount", [inside]);
});

test("an update before any preparation never writes secrets to disk", options, async (t) => {
  const { host, volumes } = await onHost(t);
  await volumes.update(aPod("a", { secret: files({ password: "s3cret" }, { secret: true }) }), signal);
  assert.equal(mountAt(await readMountTable(), join(host.dataDir, "memory"))?.type, "tmpfs");
});

test(
  "release also removes busy mounts and mounts that a container made, but deletes no files of others",
  options,
  async (t) => {
    const { host, volumes } = await onHost(t);
    await volumes.prepare(
      aPod("a", { scratch: { ...DISK, sizeLimitBytes: 8 * MIB }, plain: DISK, cache: MEMORY }),
      signal,
    );
    const foreign = join(host.directory, "foreign");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "witness"), "");
    for (const name of ["plain", "cache", "scratch"]) {
      const path = await sourceOf(volumes, "a", name);
      mkdirSync(join(path, "m"));
      await run("mount", ["--bind", foreign, join(path, "m")]);
    }
    const sitter = spawn("sleep", ["1000"], { cwd: await sourceOf(volumes, "a", "scratch") });
    t.after(() => sitter.kill());
    await once(sitter, "spawn");
    await volumes.release("a", signal);
    assert.ok(existsSync(join(foreign, "witness")));
    assert.deepEqual(
      host.remains().filter((it) => !it.startsWith("/dev/")),
      [],
    );
    sitter.kill();
    await once(sitter, "exit");
    await until("the device goes with its last user", () => host.devices().length === 0);
  },
);

test(
  "claims: the space is reserved, the limit is enforced, and both pods see one directory",
  options,
  async (t) => {
    const { host, volumes } = await onHost(t);
    const claim: VolumeSource = {
      type: "claim",
      namespace: "shop",
      claim: "db",
      capacityBytes: 16 * MIB,
      readOnly: false,
    };
    await volumes.prepare(aPod("a", { data: claim }), signal);
    await volumes.prepare(aPod("b", { data: claim }), signal);
    const image = statSync(join(host.dataDir, "claims/shop/db/data.img"));
    assert.ok(image.blocks * 512 >= 16 * MIB);
    const path = await sourceOf(volumes, "a", "data");
    assert.equal(await sourceOf(volumes, "b", "data"), path);
    assert.deepEqual(readdirSync(path), []);
    assert.equal((await writeUpTo(join(path, "x"), 15 * MIB)).code, undefined);
    assert.equal((await writeUpTo(join(path, "y"), 16 * MIB)).code, "ENOSPC");
    const [state] = await volumes.claims();
    assert.ok(state?.usedBytes !== undefined && state.usedBytes > 15 * MIB);
    await volumes.release("a", signal);
    assert.ok(existsSync(join(path, "x")));
    await volumes.release("b", signal);
    assert.deepEqual(host.mounts(), []);
    assert.deepEqual(await host.settledDevices(0), []);
    await volumes.prepare(aPod("c", { data: claim }), signal);
    assert.ok(existsSync(join(await sourceOf(volumes, "c", "data"), "x")));
    await volumes.release("c", signal);
    await volumes.removeClaim("shop", "db", signal);
    assert.equal(existsSync(join(host.dataDir, "claims/shop")), false);
  },
);

test(
  "a claim larger than the disk is refused with both numbers, and can be made smaller",
  options,
  async (t) => {
    const { volumes } = await onHost(t);
    const claim = { type: "claim", namespace: "shop", claim: "db", readOnly: false } as const;
    const huge = aPod("a", { data: { ...claim, capacityBytes: 2 ** 50 } });
    await assert.rejects(
      volumes.prepare(huge, signal),
      failsWith("NO_ROOM", /volume data: claim shop\/db: \d+Mi are needed, \d+Mi are free/),
    );
    await volumes.release("a", signal);
    await volumes.removeClaim("shop", "db", signal);
    await volumes.prepare(aPod("a", { data: { ...claim, capacityBytes: MIB } }), signal);
  },
);

test("a claim whose record is damaged keeps its data and its size", options, async (t) => {
  const { host, volumes } = await onHost(t);
  const claim = { type: "claim", namespace: "shop", claim: "db", readOnly: false } as const;
  const pod = aPod("a", { data: { ...claim, capacityBytes: 8 * MIB } });
  await volumes.prepare(pod, signal);
  writeFileSync(join(await sourceOf(volumes, "a", "data"), "precious"), "data");
  await volumes.release("a", signal);
  writeFileSync(join(host.dataDir, "claims/shop/db/claim.json"), "{");
  await volumes.prepare(pod, signal);
  assert.equal(readFileSync(join(await sourceOf(volumes, "a", "data"), "precious"), "utf8"), "data");
  const [found] = await volumes.claims();
  assert.equal(found?.capacityBytes, 8 * MIB);
});

test("without loop devices limits are measured, and an exceeded limit is reported", options, async (t) => {
  const clock = new VirtualClock();
  const host = await VolumeHost.setUp(t, parent, { useImages: false });
  const volumes = await host.start([], clock);
  const claim: VolumeSource = {
    type: "claim",
    namespace: "shop",
    claim: "db",
    capacityBytes: MIB,
    readOnly: false,
  };
  await volumes.prepare(
    aPod("a", { scratch: { ...DISK, sizeLimitBytes: MIB }, small: { ...DISK, sizeLimitBytes: MIB }, claim }),
    signal,
  );
  for (const name of ["scratch", "claim"])
    await writeUpTo(join(await sourceOf(volumes, "a", name), "x"), 3.5 * MIB);
  await clock.run(10_000);
  await until("both are reported", () => host.excesses.length === 2);
  assert.deepEqual(
    host.excesses.map(({ podUid, message }) => [podUid, message]),
    [
      ["a", "volume scratch: 4Mi are used, 1Mi are allowed"],
      [undefined, "claim shop/db: 4Mi are used, 1Mi are allowed"],
    ],
  );
  await volumes.release("a", signal);
  assert.deepEqual(await host.settled(), []);
});
