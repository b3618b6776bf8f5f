import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  ftruncateSync,
  lchownSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { randomOf } from "@forage/common/random";

const BLOCK_BYTES = 512;

/**
 * Fills a directory with everything that a file system supports: unusual names, owners, modes, links, holes,
 * attributes, pipes.
 */
export function growTree(root: string, seed: number, entries: number): void {
  const random = new Dice(seed);
  const directories: Buffer[] = [Buffer.from(root)];
  const files: Buffer[] = [];
  for (let i = 0; i < entries; i += 1) {
    const parent = pick(random, directories);
    const path = Buffer.concat([parent, Buffer.from("/"), nameOf(random, i)]);
    // A longer path exceeds the limit of a call.
    if (path.byteLength > 3_500) continue;
    switch (random.integer(8)) {
      case 0:
      case 1:
        mkdirSync(path);
        directories.push(path);
        break;
      case 2:
        symlinkSync(pick(random, ["/etc/passwd", "../..", "missing", "x".repeat(900), "é ü"]), path);
        lchownSync(path, random.integer(70_000), random.integer(70_000));
        continue;
      case 3: {
        const target = files.length === 0 ? undefined : pick(random, files);
        if (target === undefined) writeFileSync(path, "");
        else linkSync(target, path);
        continue;
      }
      case 4: {
        const file = openSync(path, "w");
        ftruncateSync(file, 1_000_000 + random.integer(2_000_000));
        writeSync(file, "data", random.integer(900_000));
        closeSync(file);
        files.push(path);
        break;
      }
      case 5:
        spawnSync("mkfifo", [path.toString()]);
        continue;
      default:
        writeFileSync(path, Buffer.alloc(random.integer(9_000), random.integer(256)));
        files.push(path);
    }
    chownSync(path, random.integer(70_000), random.integer(70_000));
    chmodSync(path, random.integer(0o10000));
    lutimesSync(path, random.integer(2_000_000_000), random.integer(2_000_000_000) + 0.123);
  }
  growAttributes(root, random);
}

class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomOf(seed).next;
  }

  /** Returns a whole number below the limit. */
  integer(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

function nameOf(random: Dice, index: number): Buffer {
  const odd = ["-rf", " ", "\n", "ü", "日本", "*", '"', "\\", "x".repeat(240), ".", "=", "'"];
  const binary = random.integer(6) === 0 ? Buffer.from([0xff, 0xfe, 0x80]) : Buffer.alloc(0);
  return Buffer.concat([Buffer.from(pick(random, odd)), binary, Buffer.from(String(index))]).subarray(0, 255);
}

/** Adds files with attributes by tar, because Node has no call for attributes. */
function growAttributes(root: string, random: Dice): void {
  const value = `v${random.integer(1_000_000)}\n=`;
  const capability = Buffer.from("0100000200200000000000000000000000000000", "hex");
  const records = Buffer.concat([
    paxRecord("SCHILY.xattr.user.forage", Buffer.from(value)),
    paxRecord("SCHILY.xattr.security.capability", capability),
  ]);
  const archive = Buffer.concat([
    header("attributes", "x", records.byteLength),
    padded(records),
    header("with-attributes", "0", 2),
    padded(Buffer.from("hi")),
    Buffer.alloc(2 * BLOCK_BYTES),
  ]);
  const args = ["--extract", "--file=-", "--xattrs", "--xattrs-include=*", `--directory=${root}`];
  const { status, stderr } = spawnSync("tar", args, { input: archive });
  if (status !== 0) throw new Error(`tar: ${stderr}`);
}

function paxRecord(key: string, value: Buffer): Buffer {
  const bytes = Buffer.byteLength(key) + value.byteLength + 3;
  const digits = String(bytes + String(bytes).length).length;
  return Buffer.concat([Buffer.from(`${bytes + digits} ${key}=`), value, Buffer.from("\n")]);
}

function header(name: string, type: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(name, 0);
  block.write("0000644\0", 100);
  block.write("0000000\0", 108);
  block.write("0000000\0", 116);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write("00000000000\0", 136);
  block.write("        ", 148);
  block.write(type, 156);
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((BLOCK_BYTES - (bytes.byteLength % BLOCK_BYTES)) % BLOCK_BYTES)]);
}

function pick<Value>(random: Dice, values: readonly Value[]): Value {
  const value = values[random.integer(values.length)];
  if (value === undefined) throw new Error("nothing to pick from");
  return value;
}

/**
 * Returns a digest of everything in a directory except `.gitpod`: names, content, owners, modes, times, links and
 * attributes.
 */
export async function digestTree(directory: string): Promise<string> {
  const options = [
    "--format=posix",
    "--pax-option=exthdr.name=%d/PaxHeaders/%f,exthdr.mtime=0,delete=atime,delete=ctime",
    "--numeric-owner",
    "--sort=name",
  ];
  const all = [...options, "--xattrs", "--xattrs-include=*", "--acls", `--directory=${directory}`];
  const names = readdirSync(directory, { encoding: "buffer" }).filter(
    (name) => name.toString() !== ".gitpod",
  );
  const args = ["--create", "--file=-", ...all, "--null", "--verbatim-files-from", "--files-from=-"];
  const env = { ...process.env, LC_ALL: "C" };
  const tar = spawn("tar", args, { stdio: ["pipe", "pipe", "inherit"], env });
  const sorted = names.sort(Buffer.compare);
  tar.stdin.end(Buffer.concat(sorted.flatMap((name) => [Buffer.from("./"), name, Buffer.from([0])])));
  const hash = createHash("sha256");
  tar.stdout.on("data", (chunk: Buffer) => hash.update(chunk));
  const [code] = await once(tar, "close");
  if (code !== 0) throw new Error(`tar failed with exit code ${code}`);
  return hash.digest("hex");
}
