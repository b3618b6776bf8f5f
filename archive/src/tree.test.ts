import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Directory } from "./directory.ts";
import { type ReceiveOptions, receiveTree } from "./receive-tree.ts";
import { resolveInRoot } from "./resolve.ts";
import { sendTree } from "./send-tree.ts";
import { encodeHeader, paddingFor, TAR_END, type TarHeader } from "./tar-header.ts";

interface Places {
  readonly from: string;
  readonly to: string;
  readonly skipped: string[];
}

function places(t: TestContext): Places {
  const dir = mkdtempSync(join(tmpdir(), "forage-archive-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const name of ["from", "to"]) mkdirSync(join(dir, name));
  return { from: join(dir, "from"), to: join(dir, "to"), skipped: [] };
}

/** Returns the paths of the files below a folder that this process has open. */
function openFilesBelow(folder: string): string[] {
  return readdirSync("/proc/self/fd")
    .map(linkOf)
    .filter((link) => link.startsWith(folder));
}

/** Returns the path of the open file. Empty if it has been closed since it was listed. */
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

async function copy(
  { from, to, skipped }: Places,
  path: string,
  change: Partial<ReceiveOptions> = {},
): Promise<void> {
  const note = (what: string, why: string) => void skipped.push(`${what} ${why}`);
  const root = await Directory.open(from);
  try {
    const place = await resolveInRoot(root, path);
    try {
      await receive(sendTree(place, { name: "top", skipped: note }), to, { skipped: note, ...change });
    } finally {
      await place.directory.close();
    }
  } finally {
    await root.close();
  }
}

async function receive(
  chunks: AsyncIterable<Buffer>,
  to: string,
  change: Partial<ReceiveOptions> = {},
): Promise<void> {
  const into = await Directory.open(to);
  let count = 0;
  const randomName = () => `random${count++}`;
  try {
    await receiveTree(chunks, { into, randomName, links: "within", skipped: () => {}, ...change });
  } finally {
    await into.close();
  }
}

async function* archive(...entries: readonly [Partial<TarHeader>, string?][]): AsyncGenerator<Buffer> {
  for (const [header, text = ""] of entries) {
    const sizeBytes = Buffer.byteLength(text);
    const plain: TarHeader = { path: "", type: "file", mode: 0o644, modifiedMs: 0, target: "", sizeBytes };
    yield Buffer.concat([encodeHeader({ ...plain, ...header }), Buffer.from(text), paddingFor(sizeBytes)]);
  }
  yield TAR_END;
}

test("a copied tree has the same contents, modes, times and links", async (t) => {
  const at = places(t);
  mkdirSync(join(at.from, "d/empty"), { recursive: true });
  mkdirSync(join(at.from, "d/closed"));
  writeFileSync(join(at.from, "d/closed/file"), "x".repeat(200_000), { mode: 0o600 });
  writeFileSync(join(at.from, "d/script"), "#!/bin/sh\n");
  chmodSync(join(at.from, "d/script"), 0o4755);
  symlinkSync("closed/file", join(at.from, "d/link"));
  symlinkSync("../script", join(at.from, "d/closed/up"));
  utimesSync(join(at.from, "d/script"), 1_600_000_000.25, 1_600_000_000.25);
  chmodSync(join(at.from, "d/closed"), 0o500);
  utimesSync(join(at.from, "d/closed"), 1_500_000_000, 1_500_000_000);

  await copy(at, "d");

  const top = join(at.to, "top");
  assert.deepEqual(readdirSync(top).sort(), ["closed", "empty", "link", "script"]);
  assert.equal(readFileSync(join(top, "closed/file"), "utf8"), "x".repeat(200_000));
  assert.deepEqual(
    [statSync(join(top, "script")).mode & 0o7777, statSync(join(top, "closed")).mode & 0o7777],
    [0o755, 0o500],
  );
  assert.equal(statSync(join(top, "script")).mtimeMs, 1_600_000_000_250);
  assert.equal(statSync(join(top, "closed")).mtimeMs, 1_500_000_000_000);
  assert.equal(readlinkSync(join(top, "link")), "closed/file");
  assert.equal(readlinkSync(join(top, "closed/up")), "../script");
  assert.deepEqual(at.skipped, []);
  await copy(at, "/d/../d/./");
});

test("a file replaces a file or link, directories are merged, and neither replaces the other", async (t) => {
  const at = places(t);
  writeFileSync(join(at.from, "new"), "new");
  writeFileSync(join(at.to, "old"), "old");
  symlinkSync("old", join(at.to, "link"));
  await copy(at, "new", { name: "link" });
  assert.equal(lstatSync(join(at.to, "link")).isFile(), true);
  assert.equal(readFileSync(join(at.to, "old"), "utf8"), "old");
  mkdirSync(join(at.to, "dir"));
  await assert.rejects(copy(at, "new", { name: "dir" }), { code: "REFUSED" });
  mkdirSync(join(at.from, "tree"));
  await assert.rejects(copy(at, "tree", { name: "old" }), { code: "REFUSED" });
  writeFileSync(join(at.from, "tree/inner"), "");
  writeFileSync(join(at.to, "dir/kept"), "");
  await copy(at, "tree", { name: "dir" });
  assert.deepEqual(readdirSync(join(at.to, "dir")).sort(), ["inner", "kept"]);
});

test("holes are preserved", async (t) => {
  const at = places(t);
  writeFileSync(join(at.from, "sparse"), "begin");
  truncateSync(join(at.from, "sparse"), 30_000_000);
  await copy(at, "sparse");
  const { size, blocks } = statSync(join(at.to, "top"));
  assert.equal(size, 30_000_000);
  assert.ok(blocks * 512 < 1_000_000, `${blocks} blocks`);
  assert.equal(readFileSync(join(at.to, "top")).subarray(0, 5).toString(), "begin");
});

test("skips and reports entries that are not files, and rejects one that the path names", async (t) => {
  const at = places(t);
  mkdirSync(join(at.from, "d"));
  execFileSync("mkfifo", [join(at.from, "d/pipe")]);
  writeFileSync(join(at.from, "d/file"), "");
  await copy(at, "d");
  assert.deepEqual(readdirSync(join(at.to, "top")), ["file"]);
  assert.deepEqual(
    at.skipped,
    ["top/d/pipe is a pipe, which can't be copied"].map((s) => s.replace("/d", "")),
  );
  await assert.rejects(copy(at, "d/pipe"), { code: "REFUSED" });
  await assert.rejects(copy(at, "d/none"), { code: "NOT_FOUND" });
  await assert.rejects(copy(at, "none/file"), { code: "NOT_FOUND" });
  await assert.rejects(copy(at, "d/file/below"), { code: "NOT_FOUND" });
});

test("resolves paths as if the root were the root directory", async (t) => {
  const at = places(t);
  writeFileSync(join(at.to, "secret"), "outside");
  mkdirSync(join(at.from, "etc"));
  writeFileSync(join(at.from, "etc/passwd"), "inside");
  symlinkSync("/etc", join(at.from, "absolute"));
  symlinkSync("../../../../../../../etc", join(at.from, "etc/above"));
  symlinkSync("../to", join(at.from, "beside"));
  symlinkSync("loop", join(at.from, "loop"));
  for (const path of [
    "/absolute/passwd",
    "etc/above/passwd",
    "../../etc/passwd",
    "absolute/../etc/./passwd",
  ]) {
    await copy(at, path);
    assert.equal(readFileSync(join(at.to, "top"), "utf8"), "inside", path);
  }
  symlinkSync("etc/passwd", join(at.from, "l0"));
  for (let i = 1; i <= 40; i += 1) symlinkSync(`l${i - 1}`, join(at.from, `l${i}`));
  await copy(at, "l39");
  await assert.rejects(copy(at, "l40"), { code: "REFUSED", message: /too many links/ });
  await assert.rejects(copy(at, "beside/secret"), { code: "NOT_FOUND" });
  await assert.rejects(copy(at, "loop"), { code: "REFUSED" });
});

for (const path of ["..", "../x", "/abs", "a/../../x", "a//b", "./a", "a/./b", ".", "", "a/", "a\0b"]) {
  test(`rejects an archive that names ${JSON.stringify(path)}`, async (t) => {
    const at = places(t);
    await assert.rejects(receive(archive([{ path }, "evil"]), at.to), /^ArchiveError/);
    assert.deepEqual(readdirSync(at.to), []);
    assert.equal(existsSync(join(at.to, "../x")), false);
  });
}

test("writes nothing through a link, whether it came from the archive or existed before", async (t) => {
  const at = places(t);
  symlinkSync(at.from, join(at.to, "there"));
  const dir = { type: "directory", mode: 0o755 } as const;
  await assert.rejects(receive(archive([{ ...dir, path: "there" }], [{ path: "there/x" }, "evil"]), at.to), {
    code: "REFUSED",
  });
  const brought = archive(
    [{ ...dir, path: "top" }],
    [{ type: "link", path: "top/a", target: at.from }],
    [{ ...dir, path: "top/a" }],
    [{ path: "top/a/x" }, "evil"],
  );
  await assert.rejects(receive(brought, at.to, { links: "any" }), { code: "REFUSED" });
  await assert.rejects(receive(archive([{ ...dir, path: "top" }], [{ path: "top/a/x" }, "evil"]), at.to), {
    code: "NOT_TAR",
  });
  await assert.rejects(receive(archive([{ path: "one" }], [{ path: "two" }]), at.to), { code: "REFUSED" });
  assert.deepEqual(readdirSync(at.from), []);
});

test("skips and reports links that lead out of the tree", async (t) => {
  const at = places(t);
  const dir = { type: "directory", mode: 0o755 } as const;
  const links: Record<string, boolean> = {
    "/etc/passwd": false,
    "..": true,
    "../..": false,
    "../sibling": true,
    "../../x": false,
    "b/../../..": false,
    "b/..": false,
    "./b": true,
    "": false,
  };
  const entries = Object.keys(links).map((target, i): [Partial<TarHeader>] => [
    { type: "link", path: `top/a/l${i}`, target },
  ]);
  const skipped: string[] = [];
  await receive(archive([{ ...dir, path: "top" }], [{ ...dir, path: "top/a" }], ...entries), at.to, {
    skipped: (path) => void skipped.push(path),
  });
  const left = Object.values(links).map((stays, i) => (stays ? [] : [`top/a/l${i}`]));
  assert.deepEqual(skipped, left.flat());
  assert.equal(readdirSync(join(at.to, "top/a")).length, 3);
});

test("an interrupted copy leaves the old file and no partial one", async (t) => {
  const at = places(t);
  writeFileSync(join(at.to, "file"), "old");
  async function* broken(): AsyncGenerator<Buffer> {
    const header = {
      path: "file",
      type: "file",
      mode: 0o644,
      modifiedMs: 0,
      target: "",
      sizeBytes: 100,
    } as const;
    yield encodeHeader(header);
    yield Buffer.from("new");
  }
  await assert.rejects(receive(broken(), at.to), { code: "NOT_TAR" });
  assert.deepEqual(readdirSync(at.to), ["file"]);
  assert.equal(readFileSync(join(at.to, "file"), "utf8"), "old");
});

test("a rejected copy ends its source and closes what it opened", async (t) => {
  const at = places(t);
  let ended = false;
  const dir = { type: "directory", mode: 0o755 } as const;
  async function* endless(): AsyncGenerator<Buffer> {
    try {
      yield* archive([{ ...dir, path: "top" }], [{ ...dir, path: "top/a" }], [{ path: "../evil" }]);
      for (;;) yield Buffer.alloc(512);
    } finally {
      ended = true;
    }
  }
  await assert.rejects(receive(endless(), at.to), { code: "REFUSED" });
  assert.equal(ended, true);
  assert.deepEqual(openFilesBelow(at.to), []);
});

test("a file that shrinks while it is sent fails the copy", async (t) => {
  const at = places(t);
  writeFileSync(join(at.from, "file"), "x".repeat(200_000));
  const root = await Directory.open(at.from);
  t.after(() => root.close());
  const place = await resolveInRoot(root, "file");
  t.after(() => place.directory.close());
  const chunks = sendTree(place, { name: "top", skipped: () => {} });
  await chunks.next();
  truncateSync(join(at.from, "file"), 100_000);
  await assert.rejects(
    async () => {
      for await (const _ of chunks);
    },
    { code: "FAILED", message: /became shorter/ },
  );
});
