import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Architecture } from "./architecture.ts";
import { type BuildOptions, downloadModule, ensureGo } from "./go-toolchain.ts";
import { NERDCTL_MODULE_SUM, NERDCTL_VERSION } from "./nerdctl-version.ts";
import { run } from "./run.ts";

const MODULE = "github.com/containerd/nerdctl/v2";
const BUILD_LIMIT_MS = 30 * 60_000;

/** Builds nerdctl for the architecture from its Go module into `target`. */
export async function buildNerdctl(
  target: string,
  architecture: Architecture,
  options: BuildOptions,
): Promise<void> {
  const go = await ensureGo(options);
  const module = await downloadModule(
    go,
    `${MODULE}@v${NERDCTL_VERSION}`,
    NERDCTL_MODULE_SUM,
    options.signal,
  );
  const work = mkdtempSync(join(tmpdir(), "forage-nerdctl-"));
  try {
    const source = join(work, "source");
    cpSync(module, source, { recursive: true });
    await run("chmod", ["-R", "u+w", source]);
    prepareSource(source);
    options.report?.("compiling nerdctl");
    await run(
      go.program,
      [
        "build",
        "-ldflags",
        `-s -w -X ${MODULE}/pkg/version.Version=v${NERDCTL_VERSION}`,
        "-o",
        join(work, "nerdctl"),
        "./cmd/nerdctl",
      ],
      {
        cwd: source,
        // The source's own go.sum pins every dependency, so no checksum database is needed.
        env: {
          ...go.env,
          GOARCH: architecture,
          GOFLAGS: "-mod=mod -modcacherw -buildvcs=false",
          GOSUMDB: "off",
          CGO_ENABLED: "0",
        },
        timeoutMs: BUILD_LIMIT_MS,
        ...(options.signal && { signal: options.signal }),
      },
    );
    mkdirSync(dirname(target), { recursive: true });
    // A rename across file systems fails, so the file is first copied to the target's directory.
    const partial = `${target}.${process.pid}`;
    cpSync(join(work, "nerdctl"), partial);
    renameSync(partial, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
    rmSync(go.dir, { recursive: true, force: true });
  }
}

// The go.mod refers to a test helper in a folder that the published module lacks.
function prepareSource(source: string): void {
  const tigron = join(source, "mod", "tigron");
  mkdirSync(tigron, { recursive: true });
  writeFileSync(join(tigron, "go.mod"), "module github.com/containerd/nerdctl/mod/tigron\n");
  const helpers = join(source, "cmd", "nerdctl", "helpers");
  for (const name of readdirSync(helpers)) {
    if (name.startsWith("testing")) rmSync(join(helpers, name));
  }
}
