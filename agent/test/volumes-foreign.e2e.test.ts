import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { run } from "../../hack/lib/run.ts";
import {
  type HostPathType,
  VolumeError,
  type VolumeErrorCode,
  type VolumeSource,
} from "../src/volumes/volumes.ts";
import { enterOwnMounts, whyNoOwnMounts } from "./own-mounts.ts";
import { aMount, aPod, VolumeHost } from "./volume-host.ts";

// Tests volumes outside the agent's control: paths of the host, and NFS. The kernel may not support NFS, so other
// programs replace mount.nfs.

const obstacle = whyNoOwnMounts();
const parent = obstacle === undefined ? enterOwnMounts() : "";
const options = { skip: obstacle ?? false, timeout: 120_000 };
const withFuse = { ...options, skip: obstacle ?? (existsSync("/dev/fuse") ? false : "needs /dev/fuse") };
const signal = new AbortController().signal;

const NFS = { type: "nfs", server: "nas.example", path: "/export", readOnly: false } as const;

function failsWith(code: VolumeErrorCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof VolumeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };
}

async function withHostPaths(t: TestContext) {
  const host = await VolumeHost.setUp(t, parent);
  const volumes = await host.start();
  const prepare = (path: string, pathType: HostPathType) =>
    volumes.prepare(aPod("a", { host: { type: "hostPath", path, pathType } }), signal);
  const bindOf = async (subPath = "") => {
    const [bind] = await volumes.binds("a", "web", [aMount("host", { subPath })], signal);
    return bind?.source ?? assert.fail();
  };
  return { host, at: (name: string) => join(host.directory, name), prepare, bindOf, volumes };
}

test("limited host paths: links that pods create never lead out", options, async (t) => {
  const host = await VolumeHost.setUp(t, parent);
  const volumes = await host.start();
  const at = (name: string) => join(host.directory, name);
  const data = at("data");
  for (const name of ["data/own/deep", "secret"]) mkdirSync(at(name), { recursive: true });
  writeFileSync(at("secret/key"), "secret");
  writeFileSync(at("data/own/file"), "own");
  for (const [link, target] of Object.entries({
    out: at("secret"),
    up: "../secret",
    in: "own",
    file: at("secret/key"),
  }))
    symlinkSync(target, join(data, link));
  symlinkSync(at("data"), at("alias"));
  symlinkSync(at("secret/new"), join(data, "dangling"));
  const sourceOf = async (path: string, pathType: HostPathType = "", within: readonly string[] = [data]) => {
    await volumes.release("a", signal);
    await volumes.prepare(aPod("a", { host: { type: "hostPath", path, pathType, within } }), signal);
    const [bind] = await volumes.binds("a", "web", [aMount("host")], signal);
    return bind?.source ?? assert.fail();
  };

  for (const name of ["out", "up", "out/sub", "file", "in/../out"])
    await assert.rejects(
      sourceOf(join(data, name)),
      failsWith("ESCAPES", /out of .*\/data, which the policy/),
      name,
    );
  await assert.rejects(sourceOf(at("secret")), failsWith("ESCAPES", /allows .*\/data$/));
  await assert.rejects(sourceOf(data, "", []), failsWith("ESCAPES", /allows no host path/));
  await assert.rejects(
    sourceOf(at("alias/own"), "", [at("alias")]),
    failsWith("ESCAPES", /through a link to .*\/data;/),
  );
  await assert.rejects(sourceOf(join(data, "dangling"), "FileOrCreate"), VolumeError);
  await assert.rejects(
    sourceOf(join(data, "own"), "File"),
    failsWith("WRONG_TYPE", /a directory, not a file/),
  );
  await assert.rejects(
    sourceOf(join(data, "none"), "Directory"),
    failsWith("SOURCE_MISSING", /none doesn't exist/),
  );
  assert.deepEqual(readdirSync(at("secret")), ["key"], "nothing is created outside");

  assert.deepEqual(readdirSync(await sourceOf(join(data, "in"))), ["deep", "file"]);
  assert.equal(readFileSync(await sourceOf(join(data, "own/file"), "File"), "utf8"), "own");
  writeFileSync(join(await sourceOf(join(data, "new/sub"), "DirectoryOrCreate"), "x"), "1");
  assert.equal(readFileSync(join(data, "new/sub/x"), "utf8"), "1");
  await sourceOf(join(data, "new/made"), "FileOrCreate");
  assert.ok(existsSync(join(data, "new/made")));
  // Mounts below the path are visible, and the host keeps them when the pod is removed.
  await run("mount", ["-t", "tmpfs", "none", join(data, "own/deep")]);
  writeFileSync(join(data, "own/deep/mounted"), "");
  const source = await sourceOf(join(data, "own"));
  assert.deepEqual(readdirSync(join(source, "deep")), ["mounted"]);
  // A mount is unchanged when its path is replaced.
  renameSync(join(data, "own"), join(data, "moved"));
  symlinkSync(at("secret"), join(data, "own"));
  await volumes.prepare(
    aPod("a", { host: { type: "hostPath", path: join(data, "own"), pathType: "", within: [data] } }),
    signal,
  );
  assert.deepEqual(readdirSync(source), ["deep", "file"]);
  await volumes.release("a", signal);
  assert.deepEqual(readdirSync(join(data, "moved/deep")), ["mounted"]);
  await run("umount", [join(data, "moved/deep")]);
});

test("host paths: each type accepts only files of that type", options, async (t) => {
  const { at, prepare, bindOf } = await withHostPaths(t);
  mkdirSync(at("directory"));
  writeFileSync(at("file"), "");
  symlinkSync("file", at("link"));
  await run("mknod", [at("char"), "c", "1", "3"]);
  await run("mknod", [at("block"), "b", "7", "0"]);
  await run("mkfifo", [at("fifo")]);
  const server = createServer().listen(at("socket"));
  t.after(() => server.close());
  const takes: Readonly<Record<HostPathType, readonly string[]>> = {
    "": ["directory", "file", "link", "char", "block", "fifo", "socket"],
    Directory: ["directory"],
    DirectoryOrCreate: ["directory"],
    File: ["file", "link"],
    FileOrCreate: ["file", "link"],
    Socket: ["socket"],
    CharDevice: ["char"],
    BlockDevice: ["block"],
  };
  for (const [pathType, names] of Object.entries(takes) as [HostPathType, readonly string[]][]) {
    for (const name of takes[""]) {
      if (names.includes(name)) {
        await prepare(at(name), pathType);
        assert.equal(await bindOf(), at(name === "link" ? "file" : name));
      } else {
        const isWrong = failsWith("WRONG_TYPE", /^volume host: host path .* is a [a-z ]+, not a [a-z ]+$/);
        await assert.rejects(prepare(at(name), pathType), isWrong, `${pathType} ${name}`);
      }
    }
  }
});

test(
  "host paths: creates a missing path if its type requires that, and otherwise waits for it",
  options,
  async (t) => {
    const { at, prepare } = await withHostPaths(t);
    const umask = process.umask(0o077);
    t.after(() => process.umask(umask));
    for (const type of ["Directory", "File", "Socket", "CharDevice", "BlockDevice"] as const) {
      await assert.rejects(
        prepare(at("nothing"), type),
        failsWith("SOURCE_MISSING", /nothing doesn't exist; it should be a/),
      );
    }
    await prepare(at("made/deep"), "DirectoryOrCreate");
    assert.equal(statSync(at("made/deep")).mode & 0o777, 0o755);
    await prepare(at("plain"), "");
    assert.ok(statSync(at("plain")).isDirectory());
    await prepare(at("made/file"), "FileOrCreate");
    assert.deepEqual([statSync(at("made/file")).mode & 0o777, statSync(at("made/file")).size], [0o644, 0]);
    writeFileSync(at("made/file"), "kept");
    await prepare(at("made/file"), "FileOrCreate");
    assert.equal(readFileSync(at("made/file"), "utf8"), "kept");
    await assert.rejects(prepare(at("no/such/parent"), "FileOrCreate"), failsWith("HOST_FAILED", /touch/));
    await assert.rejects(
      prepare(at("made/file/below"), "DirectoryOrCreate"),
      failsWith("HOST_FAILED", /Not a directory/),
    );
  },
);

test(
  "host paths: unusual names are mounted under another name, and release does not affect them",
  options,
  async (t) => {
    const { host, at, prepare, bindOf, volumes } = await withHostPaths(t);
    const odd = at('a, b:c "d"');
    mkdirSync(odd);
    writeFileSync(join(odd, "witness"), "");
    await prepare(odd, "Directory");
    const path = await bindOf();
    assert.doesNotMatch(path, /[,:"\n]/);
    assert.deepEqual(readdirSync(path), ["witness"]);
    await volumes.release("a", signal);
    assert.deepEqual(host.mounts(), []);
    assert.ok(existsSync(join(odd, "witness")));
  },
);

test(
  "host paths: sub-paths may lie on file systems that are mounted below, but not beside",
  options,
  async (t) => {
    const { at, prepare, bindOf } = await withHostPaths(t);
    mkdirSync(at("srv/disk"), { recursive: true });
    mkdirSync(at("beside"));
    await run("mount", ["-t", "tmpfs", "tmpfs", at("srv/disk")]);
    t.after(() => run("umount", [at("srv/disk")]));
    mkdirSync(at("srv/disk/data"));
    symlinkSync("../../beside", at("srv/disk/out"));
    symlinkSync(at("srv"), at("link"));
    await prepare(at("link"), "Directory");
    assert.equal(statSync(await bindOf("disk/data")).ino, statSync(at("srv/disk/data")).ino);
    assert.equal(statSync(await bindOf("disk/new")).ino, statSync(at("srv/disk/new")).ino);
    await assert.rejects(bindOf("disk/out"), failsWith("ESCAPES", /leads out/));
  },
);

/** Sets up a host whose mount.nfs is a shell script; `$1` is the source, `$2` the target, `$4` the options. */
async function withNfs(t: TestContext, script: string) {
  const directory = join(parent, "programs");
  mkdirSync(directory, { recursive: true });
  const program = join(directory, `mount-${readdirSync(directory).length}`);
  writeFileSync(program, `#!/bin/sh\n${script}\n`);
  chmodSync(program, 0o755);
  const host = await VolumeHost.setUp(t, parent, { mountNfsProgram: program });
  return { host, volumes: await host.start() };
}

function nfsPod(uid: string, changes: Partial<VolumeSource & { type: "nfs" }> = {}) {
  return aPod(uid, { share: { ...NFS, ...changes } });
}

test(
  "nfs: an export is mounted once, read-only if the volume is, and its files outlive the pod",
  options,
  async (t) => {
    const calls = join(parent, "calls");
    const shared = join(parent, "shared");
    mkdirSync(shared, { recursive: true });
    writeFileSync(join(shared, "witness"), "");
    const { host, volumes } = await withNfs(t, `echo "$@" >> ${calls}; exec mount --bind ${shared} "$2"`);
    await volumes.prepare(nfsPod("a"), signal);
    await volumes.prepare(nfsPod("a"), signal);
    await volumes.prepare(nfsPod("b", { server: "[fd00::1]", readOnly: true }), signal);
    const target = (uid: string) => join(host.dataDir, "mounts", uid, "volume/share");
    assert.deepEqual(readFileSync(calls, "utf8").trim().split("\n"), [
      `nas.example:/export ${target("a")} -o hard,retry=0,nodev,nosuid,rw`,
      `[fd00::1]:/export ${target("b")} -o hard,retry=0,nodev,nosuid,ro`,
    ]);
    const mounts = [aMount("share"), aMount("share", { subPath: "new/deep", mountPath: "/mnt/share/x" })];
    const [whole, part] = await volumes.binds("a", "web", mounts, signal);
    assert.equal(statSync(whole?.source ?? "").ino, statSync(shared).ino);
    assert.equal(statSync(part?.source ?? "").ino, statSync(join(shared, "new/deep")).ino);
    const [readOnly] = await volumes.binds("b", "web", mounts.slice(0, 1), signal);
    assert.equal(readOnly?.readOnly, true);
    for (const uid of ["a", "b"]) await volumes.release(uid, signal);
    assert.deepEqual(await host.settled(), []);
    assert.ok(existsSync(join(shared, "witness")));
  },
);

test("nfs: reports the message of the server or of mount", options, async (t) => {
  const { volumes } = await withNfs(t, "echo 'mount.nfs: access denied by server' >&2; exit 32");
  const denied = /^volume share: nfs nas\.example:\/export: mount\.nfs: access denied by server$/;
  await assert.rejects(volumes.prepare(nfsPod("a"), signal), failsWith("UNAVAILABLE", denied));
  const old = await withNfs(t, "echo 'mount.nfs: No such device' >&2; exit 32");
  await assert.rejects(
    old.volumes.prepare(nfsPod("a"), signal),
    failsWith("HOST_FAILED", /this host's kernel has no NFS/),
  );
  const host = await VolumeHost.setUp(t, parent, { mountNfsProgram: "/nonexistent/mount.nfs" });
  const missing = /\/nonexistent\/mount\.nfs is missing: install nfs-common/;
  await assert.rejects((await host.start()).prepare(nfsPod("a"), signal), failsWith("HOST_FAILED", missing));
});

test("nfs: a hanging mount can be cancelled", options, async (t) => {
  const { host, volumes } = await withNfs(t, "exec sleep 1000");
  const abort = new AbortController();
  const preparing = volumes.prepare(nfsPod("a"), abort.signal);
  setTimeout(() => abort.abort(), 100);
  await assert.rejects(preparing, failsWith("ABORTED", /aborted/));
  await volumes.release("a", signal);
  assert.deepEqual(await host.settled(), []);
});

test(
  "nfs: a server that dies hangs neither the agent nor other pods, and its mount can be released",
  withFuse,
  async (t) => {
    const script = join(import.meta.dirname, "hanging-server.ts");
    const { host, volumes } = await withNfs(t, `exec ${process.execPath} ${script} "$@"`);
    const asking = assert.rejects(
      volumes.prepare(nfsPod("a"), signal),
      failsWith(
        "UNAVAILABLE",
        /^volume share: nfs nas\.example:\/export doesn't answer: stat: did not end within 5000 ms$/,
      ),
    );
    // More reads than there are threads for files, so that a thread that waits for the server would block some.
    let reads = 0;
    let isAsking = true;
    const reading = (async () => {
      while (isAsking) {
        const beganMs = performance.now();
        await Promise.all(Array.from({ length: 8 }, () => readFile("/proc/self/mountinfo")));
        assert.ok(performance.now() - beganMs < 4_000);
        reads += 1;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    await volumes.prepare(aPod("b", { scratch: { type: "emptyDir", medium: "disk" } }), signal);
    await volumes.release("b", signal);
    await asking;
    isAsking = false;
    await reading;
    assert.ok(reads > 10);
    const next = await host.start(["a"]);
    await assert.rejects(next.prepare(nfsPod("a"), signal), failsWith("UNAVAILABLE", /doesn't answer/));
    await next.release("a", signal);
    assert.deepEqual(await host.settled(), []);
  },
);
