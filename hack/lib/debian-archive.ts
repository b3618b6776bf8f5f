import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

/** Returns the address of the Debian archive in this machine's own package sources. */
export async function debianArchive(): Promise<string> {
  const { stdout } = await run("apt-get", [
    ...["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"],
  ]);
  const [address] = stdout.split("\n").filter(Boolean);
  if (address === undefined)
    throw new SetupError(
      "NOT_READY",
      "the package sources of this machine name no Debian archive",
      "add one to /etc/apt/sources.list.d, then run: apt-get update",
    );
  return address;
}
