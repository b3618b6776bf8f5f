import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../../common/src/message-of.ts";
import type { Architecture } from "../lib/architecture.ts";
import { SetupError } from "../lib/setup-error.ts";

export const FORMATS = ["deb", "tar"] as const;
export type Format = (typeof FORMATS)[number];

export interface PackageFlags {
  readonly architectures: readonly Architecture[];
  readonly formats: readonly Format[];
  readonly outDir: string;
  /** If undefined, the version of package.json is used. */
  readonly version: string | undefined;
  /** The level of compression. Default: 9 of zstd for Debian packages, and 6 of gzip for archives. */
  readonly compressionLevel?: number;
}

/** A version that Debian accepts, without an epoch and a revision. */
const VERSION = /^[0-9][0-9A-Za-z.+~]{0,63}$/;

/** Parses the command line. `startDir` is the base of relative paths, and `own` this machine's architecture. */
export function parsePackageFlags(
  argv: readonly string[],
  startDir: string,
  own: Architecture,
): PackageFlags {
  const text = { type: "string" } as const;
  const { values } = parse(() =>
    parseArgs({ args: [...argv], options: { arch: text, format: text, out: text, version: text } }),
  );
  const { arch = own, format = "all", out = "dist/packages", version } = values;
  if (!["amd64", "arm64", "all"].includes(arch)) throw usage(`--arch ${arch}`, "amd64, arm64 or all");
  if (!["deb", "tar", "all"].includes(format)) throw usage(`--format ${format}`, "deb, tar or all");
  if (version !== undefined && !VERSION.test(version))
    throw usage(`--version ${version}`, "a version such as 0.2.0 or 0.2.0~rc1");
  return {
    architectures: arch === "all" ? ["amd64", "arm64"] : [arch as Architecture],
    formats: format === "all" ? FORMATS : [format as Format],
    outDir: resolve(startDir, out),
    version,
  };
}

function parse<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new SetupError("BAD_USAGE", messageOf(error), "hack/package --help", { cause: error });
  }
}

function usage(given: string, expected: string): SetupError {
  return new SetupError("BAD_USAGE", `${given} is not valid`, `give ${expected}`);
}
