import { realpath, stat } from "node:fs/promises";
import { basename, dirname, posix, resolve } from "node:path";
import { ArchiveError, Directory } from "@forage/archive";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { explain } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { plainText } from "../output/plain-text.ts";
import { type CopyCall, type CopyOptions, copyInto, copyOut } from "../session/copy.ts";
import { findPod } from "./find.ts";
import { parseReference } from "./reference.ts";

export const cp = defineCommand({
  name: "cp",
  summary: "Copy a file or directory out of a container or into it",
  details: `Exactly one of both is POD:/PATH. Into a directory that is there it goes under its own name, as with cp.
Permissions and times are kept, owners are not: in the container, files are read and written as its user. It needs no program in the container.
Links are copied as links (one that is named itself is followed); out of a container, links that lead out of what is copied are left out. So are devices, pipes and sockets. If anything was left out the exit code is 1. A file is replaced as a whole, or not at all.`,
  operands: [
    { name: "SOURCE", required: true, help: "what to copy: POD:/PATH, or a path on this machine" },
    { name: "TARGET", required: true, help: "where to: a path on this machine, or POD:/PATH" },
  ],
  flags: {
    container: { type: "text", short: "c", hint: "NAME", help: "which container; the main one by default" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [source = "", target = ""] = invocation.operands;
    const [from, to] = [parseRemote(source), parseRemote(target)];
    if ((from === undefined) === (to === undefined))
      throw new CliError(
        "USAGE",
        "exactly one of SOURCE and TARGET is POD:/PATH; write ./a:b for a file of that name here",
      );
    const remote = (from ?? to) as Remote;
    const local = from === undefined ? source : target;
    return withCoordinator(context, (coordinator) =>
      new Copy(context, coordinator, invocation.flags.container ?? "").run(remote, local, from === undefined),
    );
  },
});

interface Remote {
  readonly pod: string;
  readonly path: string;
}

/**
 * Parses `POD:/PATH`. Returns undefined for a path of this machine, which has no colon before its
 * first slash.
 */
export function parseRemote(text: string): Remote | undefined {
  const [, pod, path = ""] = /^((?:pods?\/|po\/)?[^/:]+):(.*)$/s.exec(text) ?? [];
  if (pod === undefined) return undefined;
  if (!path.startsWith("/")) throw new CliError("USAGE", `"${text}": paths in containers begin with /`);
  return { pod: parseReference(pod)?.name ?? pod, path };
}

class Copy {
  readonly #context: Context;
  readonly #coordinator: Coordinator;
  readonly #container: string;
  #leftOut = 0;

  constructor(context: Context, coordinator: Coordinator, container: string) {
    this.#context = context;
    this.#coordinator = coordinator;
    this.#container = container;
  }

  async run({ pod, path }: Remote, local: string, into: boolean): Promise<number> {
    const { namespace } = this.#context.settings;
    const { name } = await findPod(this.#coordinator, namespace, pod);
    const options: CopyOptions = {
      start: { namespace, pod: name, container: this.#container, options: { path, into } },
      signal: this.#context.signal,
      remark: (lines) => this.#remark(lines),
    };
    try {
      if (into) await this.#into(options, local);
      else await this.#out(options, path, local);
    } catch (error) {
      if (this.#context.signal.aborted) throw this.#context.signal.reason;
      if (error instanceof ArchiveError) throw new CliError("REFUSED", error.message, { cause: error });
      throw isSystemError(error) ? fileError(error, local) : explain(error, this.#coordinator.endpoint);
    }
    if (this.#leftOut === 0) return EXIT.ok;
    throw new CliError(
      "REFUSED",
      `copied, but ${this.#leftOut} of it ${this.#leftOut === 1 ? "was" : "were"} left out`,
    );
  }

  async #out(options: CopyOptions, path: string, target: string): Promise<void> {
    const place = await localTarget(target, posix.basename(path));
    try {
      await copyOut(await this.#call(), options, {
        ...place,
        randomName: () => this.#context.world.randomId().replaceAll("-", ""),
        skipped: (what, why) => this.#remark(`${what} ${why}\n`),
      });
    } finally {
      await place.into.close();
    }
  }

  async #into(options: CopyOptions, source: string): Promise<void> {
    const path = await realpath(source);
    const directory = await Directory.open(dirname(path));
    try {
      const name = basename(path);
      if (name === "")
        throw new CliError("USAGE", "the root directory is too much to copy: name something in it");
      const place = { directory, name, stats: await directory.stat(name) };
      await copyInto(await this.#call(), options, place, {
        name: basename(resolve(source)),
        skipped: (what, why) => this.#remark(`${what} ${why}\n`),
      });
    } finally {
      await directory.close();
    }
  }

  #call(): Promise<CopyCall> {
    return this.#coordinator.duplex(operator.copy);
  }

  #remark(lines: string): void {
    const text = plainText(lines, { lines: true });
    this.#leftOut += text.split("\n").length - 1;
    this.#context.world.stderr.write(text.replaceAll(/^(?=.)/gm, "left out: "));
  }
}

/**
 * Returns the path to write: the target with the source's name if the target is a directory, else
 * the target itself.
 */
async function localTarget(
  target: string,
  ownName: string,
): Promise<{ readonly into: Directory; readonly name: string | undefined }> {
  const stats = await stat(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  // The last segment of the container's path may be the name of a link, which is the name that the
  // user gave.
  const name = ownName === "" || ownName === "." || ownName === ".." ? undefined : ownName;
  if (stats?.isDirectory()) return { into: await Directory.open(target), name };
  if (target.endsWith("/")) throw new CliError("USAGE", `there is no directory ${target}`);
  const path = resolve(target);
  return { into: await Directory.open(dirname(path)), name: basename(path) };
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return (
    error instanceof Error && "syscall" in error && typeof (error as NodeJS.ErrnoException).code === "string"
  );
}

function fileError(error: NodeJS.ErrnoException, path: string): CliError {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "there is no such file or directory",
    EACCES: "permission denied",
    EPERM: "permission denied",
    ENOSPC: "there is no space left on the disk",
    ENOTDIR: "a part of the path is not a directory",
  };
  return new CliError("REFUSED", `${path}: ${reasons[error.code ?? ""] ?? error.code}`, { cause: error });
}
