import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { cacheDir } from "../lib/cache-dir.ts";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

const DOWNLOAD_LIMIT_MS = 10 * 60_000;

interface LockedPackage {
  readonly version: string;
  readonly integrity: string;
}

/**
 * Returns a directory like node_modules with the named package of the lock file, which npm does not install on this
 * machine because it is for another one. It is downloaded once and compared with the lock file's digest.
 */
export async function ensureNpmPackage(checkout: string, name: string): Promise<string> {
  const { version, integrity } = lockedPackage(checkout, name);
  const root = join(cacheDir(), "npm", `${name.replaceAll("/", "-")}-${version}`);
  if (existsSync(join(root, name))) return root;
  mkdirSync(dirname(root), { recursive: true });
  const work = mkdtempSync(`${root}.`);
  try {
    await run("npm", ["pack", `${name}@${version}`, "--pack-destination", work, "--silent"], {
      cwd: "/",
      timeoutMs: DOWNLOAD_LIMIT_MS,
    });
    const { stdout } = await run("ls", [work]);
    const archive = join(work, stdout.trim());
    const digest = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    if (digest !== integrity) {
      const message = `${name}@${version} has the digest ${digest}, and package-lock.json says ${integrity}`;
      throw new SetupError("DOWNLOAD_FAILED", message, "check npm's registry setting");
    }
    const target = join(work, "root", name);
    mkdirSync(target, { recursive: true });
    await run("tar", [
      "--extract",
      "--gzip",
      "--file",
      archive,
      "--directory",
      target,
      "--strip-components=1",
    ]);
    rmSync(root, { recursive: true, force: true });
    renameSync(join(work, "root"), root);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return root;
}

function lockedPackage(checkout: string, name: string): LockedPackage {
  const lock = JSON.parse(readFileSync(join(checkout, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  const found = lock.packages[`node_modules/${name}`];
  if (found === undefined)
    throw new SetupError("MISSING_TOOL", `package-lock.json has no ${name}`, "npm install");
  return found;
}
