import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { readTar } from "./read-tar.ts";
import { encodeHeader, paddingFor, TAR_END, type TarHeader } from "./tar-header.ts";

const FILE: TarHeader = {
  path: "top/file",
  type: "file",
  mode: 0o640,
  modifiedMs: 1_700_000_000_123.456,
  sizeBytes: 0,
  target: "",
};

async function headersOf(...chunks: readonly Buffer[]): Promise<TarHeader[]> {
  const headers: TarHeader[] = [];
  for await (const { header } of readTar(chunked(Buffer.concat(chunks), 7))) headers.push(header);
  return headers;
}

async function* chunked(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

for (const [what, change] of [
  ["plain", { modifiedMs: 1_700_000_000_000 }],
  ["fractions of a second", {}],
  ["before the epoch", { modifiedMs: -1500 }],
  ["100 bytes of name", { path: `top/${"n".repeat(96)}` }],
  ["101 bytes of name", { path: `top/${"n".repeat(97)}` }],
  ["a name of 4000 bytes with every length of record", { path: `top/${"ü/".repeat(1330)}x` }],
  ["a name with a line break and an equals sign", { path: "top/a=\nb" }],
  ["a directory", { type: "directory", mode: 0o1777 }],
  ["a long directory", { type: "directory", path: `top/${"d".repeat(99)}` }],
  ["a link", { type: "link", target: "../else where" }],
  ["a long link", { type: "link", target: "t".repeat(300) }],
] as const) {
  test(`a decoded header equals the encoded one: ${what}`, async () => {
    const header = { ...FILE, ...change } as TarHeader;
    const [back, ...rest] = await headersOf(encodeHeader(header), TAR_END);
    const path = header.type === "directory" ? `${header.path}/` : header.path;
    const modifiedMs = Math.round(header.modifiedMs);
    assert.deepEqual(back, { ...header, path, modifiedMs });
    assert.deepEqual(rest, []);
  });
}

test("records of extended headers contain their own length, whatever it is", async () => {
  for (let length = 90; length < 130; length++) {
    const path = "x".repeat(length);
    assert.equal((await headersOf(encodeHeader({ ...FILE, path }), TAR_END))[0]?.path, path);
  }
});

test("encodes sizes beyond those of a plain header", async () => {
  const sizeBytes = 20 * 1024 ** 3;
  const entries = readTar(chunked(encodeHeader({ ...FILE, sizeBytes }), 512));
  assert.equal((await entries.next()).value.header.sizeBytes, sizeBytes);
});

test("tar reads encoded archives", () => {
  const content = Buffer.from("hello");
  const path = `top/${"long".repeat(40)} ü`;
  const archive = Buffer.concat([
    encodeHeader({ ...FILE, path: "top", type: "directory", mode: 0o755 }),
    encodeHeader({ ...FILE, path, sizeBytes: content.length }),
    content,
    paddingFor(content.length),
    TAR_END,
  ]);
  const listed = execFileSync("tar", ["--list", "--verbose", "--quoting-style=literal", "--utc"], {
    input: archive,
  });
  assert.match(
    listed.toString(),
    /^drwxr-xr-x .* top\/\n-rw-r----- .* 5 2023-11-14 22:13 top\/(long){40} ü\n$/,
  );
});

for (const [what, bytes] of [
  ["nothing", Buffer.alloc(0)],
  ["half a block", Buffer.alloc(100)],
  ["something else", Buffer.alloc(1024, "x")],
  ["cut off in the content", Buffer.concat([encodeHeader({ ...FILE, sizeBytes: 100 }), Buffer.alloc(50)])],
  ["cut off before the end", encodeHeader(FILE)],
  ["a record that lies about its length", withPax("99 path=x\n")],
  ["a record without a value", withPax("8 path\n\n")],
  ["a record of no length", withPax("0 path=x\n")],
  ["a size that is no number", withPax("13 size=1e999\n")],
  ["a negative size", withPax("11 size=-1\n")],
] as const) {
  test(`rejects ${what}`, async () => {
    await assert.rejects(headersOf(bytes), { name: "ArchiveError", code: "NOT_TAR" });
  });
}

test("rejects an extended header that would fill the memory", async () => {
  const huge = encodeHeader({ ...FILE, path: "x".repeat(100_000) });
  await assert.rejects(headersOf(huge, TAR_END), { code: "NOT_TAR" });
});

/** Returns a plain header after an extended one with this content. */
function withPax(content: string): Buffer {
  const long = encodeHeader({ ...FILE, path: "x".repeat(101), modifiedMs: 0 });
  const pax = Buffer.from(long.subarray(0, 512));
  pax.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  pax.write("        ", 148);
  const sum = pax.reduce((total, byte) => total + byte, 0);
  pax.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const body = Buffer.from(content);
  return Buffer.concat([
    pax,
    body,
    paddingFor(body.length),
    encodeHeader({ ...FILE, modifiedMs: 0 }),
    TAR_END,
  ]);
}
