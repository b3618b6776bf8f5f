import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "./cache-dir.ts";
import { packOciArchive } from "./oci-archive.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";
import { packTar, type TarEntry } from "./tar.ts";

export interface BusyboxImageOptions {
  /** Full reference with tag, such as `localhost/forage/hello:1`. */
  readonly name: string;
  /** Extra files: absolute path in the image → text, or text with a mode (default 0644). */
  readonly files?: Readonly<Record<string, string | { readonly text: string; readonly mode: number }>>;
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly env?: readonly string[];
  /** Further fields of the image's configuration: `User`, `StopSignal`, … */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Default: this machine's. */
  readonly architecture?: string;
}

// Debian 12 keeps it in /bin, Debian 13 in /usr/bin (with /bin a link to it).
const BUSYBOX_PATHS = ["/bin/busybox", "/usr/bin/busybox"];

/** Makes an image of Debian's static busybox. Returns the path of its OCI archive, which is cached by content. */
export async function buildBusyboxImage(options: BusyboxImageOptions): Promise<string> {
  const archive = packOciArchive({
    reference: options.name,
    layer: packTar(await rootFileSystem(options.files ?? {})),
    entrypoint: options.entrypoint ?? [],
    cmd: options.cmd ?? ["/bin/sh"],
    env: ["PATH=/usr/local/bin:/usr/bin:/bin", ...(options.env ?? [])],
    ...(options.config && { config: options.config }),
    ...(options.architecture !== undefined && { architecture: options.architecture }),
  });
  const dir = join(cacheDir(), "images");
  const path = join(dir, `${createHash("sha256").update(archive).digest("hex").slice(0, 32)}.tar`);
  if (!existsSync(path)) {
    mkdirSync(dir, { recursive: true });
    // Several processes may build the same image at once. Each renames its own complete file.
    const partial = `${path}.${process.pid}.${Math.trunc(performance.now() * 1000)}`;
    writeFileSync(partial, archive);
    renameSync(partial, path);
  }
  return path;
}

/** Returns the path of Debian's static busybox, if it is installed. */
export function findStaticBusybox(): string | undefined {
  return BUSYBOX_PATHS.find((path) => existsSync(path) && isStatic(readFileSync(path)));
}

/** Returns the files of an image with busybox and all its commands. */
export async function rootFileSystem(files: NonNullable<BusyboxImageOptions["files"]>): Promise<TarEntry[]> {
  const busybox = findStaticBusybox();
  if (!busybox)
    throw new SetupError("MISSING_TOOL", "there is no static busybox", "apt-get install busybox-static");
  const applets = (await run(busybox, ["--list"])).stdout
    .split("\n")
    .filter((name) => name && name !== "busybox");
  const entries: TarEntry[] = [
    { type: "directory", path: "bin/" },
    { type: "file", path: "bin/busybox", content: readFileSync(busybox), mode: 0o755 },
    ...applets.sort().map((name): TarEntry => ({ type: "link", path: `bin/${name}`, target: "busybox" })),
    { type: "directory", path: "etc/" },
    {
      type: "file",
      path: "etc/passwd",
      content: Buffer.from("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    },
    { type: "file", path: "etc/group", content: Buffer.from("root:x:0:\nnogroup:x:65534:\n") },
    { type: "directory", path: "tmp/", mode: 0o1777 },
    { type: "directory", path: "usr/" },
    { type: "link", path: "usr/bin", target: "../bin" },
  ];
  for (const [path, file] of Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const { text, mode } = typeof file === "string" ? { text: file, mode: 0o644 } : file;
    entries.push({ type: "file", path: path.replace(/^\/+/, ""), content: Buffer.from(text), mode });
  }
  return entries;
}

// A dynamic program has a PT_INTERP header with its loader, and a static one has none.
function isStatic(program: Buffer): boolean {
  if (program.toString("latin1", 1, 4) !== "ELF") return false;
  const tableOffset = Number(program.readBigUInt64LE(32));
  const entryBytes = program.readUInt16LE(54);
  const entries = program.readUInt16LE(56);
  const PT_INTERP = 3;
  return !Array.from({ length: entries }, (_, i) =>
    program.readUInt32LE(tableOffset + i * entryBytes),
  ).includes(PT_INTERP);
}
