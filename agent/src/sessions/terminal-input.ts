import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import type { ContainerInput } from "./container-input.ts";

// Each helper is a process of about 5 MB.
const TERMINALS_MAX = 32;
const SAID_MAX_LENGTH = 500;

/**
 * A script that duplicates the descriptor of a terminal from the process that holds it (pidfd_open and pidfd_getfd,
 * which node doesn't support) and prints "+". Then it reads frames: "d", a length and data for the terminal, or "s",
 * columns and rows. After data it prints "+" again.
 */
const HELPER = `
my ($holder, $number) = map { $_ + 0 } @ARGV;
my $process = syscall(434, $holder, 0);
die "pidfd_open: $!\\n" if $process < 0;
my $copy = syscall(438, $process, $number, 0);
die "pidfd_getfd: $!\\n" if $copy < 0;
open(my $terminal, "+<&=", $copy) or die "open: $!\\n";
binmode STDIN;
syswrite(STDOUT, "+");
sub take {
  my ($length, $data) = (shift, "");
  while (length($data) < $length) {
    sysread(STDIN, $data, $length - length($data), length($data)) or exit 0;
  }
  return $data;
}
while (1) {
  my ($kind, $first, $second) = unpack("a n n", take(5));
  if ($kind eq "s") {
    my $size = pack("S4", $second, $first, 0, 0);
    ioctl($terminal, 0x5414, $size);
    next;
  }
  my $data = take($first * 65536 + $second);
  while (length($data) > 0) {
    my $taken = syswrite($terminal, $data);
    if (defined $taken) { $data = substr($data, $taken); next; }
    die "write: $!\\n" unless $!{EAGAIN} || $!{EINTR};
    my $set = "";
    vec($set, $copy, 1) = 1;
    select(undef, $set, undef, undef);
  }
  syswrite(STDOUT, "+");
}
`;

/** Opens the other ends of containers' terminals, which containerd's shims hold. */
export class TerminalInputs {
  readonly #perl: string;
  #open = 0;

  constructor(perl = "perl") {
    this.#perl = perl;
  }

  /** Opens the input of a terminal. `pid` is the container's first process. */
  async open(pid: number): Promise<ContainerInput> {
    const { holder, descriptor } = await findTerminal(pid);
    if (this.#open >= TERMINALS_MAX)
      throw new Error(`${TERMINALS_MAX} sessions with terminals of containers are open on this node`);
    this.#open += 1;
    const child = spawn(this.#perl, ["-MErrno", "-e", HELPER, String(holder), String(descriptor)], {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.once("close", () => {
      this.#open -= 1;
    });
    await isReady(child);
    return inputOver(child);
  }
}

/**
 * Finds the process that holds the other end of a terminal, and its descriptor. `pid` is the first process that uses
 * the terminal.
 */
async function findTerminal(pid: number): Promise<{ readonly holder: number; readonly descriptor: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The program's name is in brackets and may contain any characters.
  const [, parent, , , device] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  if (parent === undefined || device === undefined) throw new Error(`/proc/${pid}/stat can't be read`);
  const index = (device & 0xff) | ((device >> 12) & 0xfff00);
  const found: { readonly descriptor: number; readonly index: number }[] = [];
  for (const name of await readdir(`/proc/${parent}/fd`)) {
    const target = await readlink(`/proc/${parent}/fd/${name}`).catch(() => "");
    if (!/\/ptmx( \(deleted\))?$/.test(target)) continue;
    const info = await readFile(`/proc/${parent}/fdinfo/${name}`, "utf8").catch(() => "");
    found.push({ descriptor: Number(name), index: Number(/^tty-index:\s*(\d+)$/m.exec(info)?.[1] ?? -1) });
  }
  // A command with a terminal (exec -t) has a terminal of its own. A program without a controlling terminal still uses
  // the first one.
  const own = found.find((it) => it.index === (device === 0 ? 0 : index));
  if (own !== undefined) return { holder: parent, descriptor: own.descriptor };
  throw new Error("its runtime keeps the other end of its terminal to itself");
}

async function isReady(child: ChildProcess): Promise<void> {
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(0, SAID_MAX_LENGTH);
  });
  child.stdin?.on("error", () => undefined);
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("error", (error: NodeJS.ErrnoException) =>
      reject(error.code === "ENOENT" ? new Error("that needs perl, which this node lacks") : error),
    );
    child.once("close", () => reject(new Error(said.trim() || "the program that reaches it has ended")));
  });
}

function inputOver(child: ChildProcess): ContainerInput {
  const writes: PromiseWithResolvers<void>[] = [];
  child.stdout?.on("data", (marks: Buffer) => {
    for (const write of writes.splice(0, marks.length)) write.resolve();
  });
  child.once("close", () => {
    for (const write of writes.splice(0)) write.reject(new Error("the terminal is closed"));
  });
  const send = (kind: "d" | "s", first: number, second: number, data: Uint8Array): void => {
    const head = Buffer.alloc(5);
    head.write(kind, "latin1");
    head.writeUInt16BE(first, 1);
    head.writeUInt16BE(second, 3);
    child.stdin?.write(Buffer.concat([head, data]));
  };
  return {
    write: (data) => {
      const write = Promise.withResolvers<void>();
      if (child.exitCode !== null || child.signalCode !== null)
        return Promise.reject(new Error("the terminal is closed"));
      writes.push(write);
      send("d", data.byteLength >>> 16, data.byteLength & 0xffff, data);
      return write.promise;
    },
    resize: (columns, rows) => {
      if ([columns, rows].every((it) => it > 0 && it <= 0xffff)) send("s", columns, rows, new Uint8Array());
    },
    // A terminal has no end of input; users send the end-of-file character themselves.
    end: () => undefined,
    close: () => void child.kill("SIGKILL"),
  };
}
