import { arch } from "node:os";
import { SetupError } from "./setup-error.ts";

/** A supported processor architecture, by its name in Go, OCI and Debian. */
export type Architecture = "amd64" | "arm64";

/** Returns this machine's architecture. */
export function goArchitecture(): Architecture {
  switch (arch()) {
    case "x64":
      return "amd64";
    case "arm64":
      return "arm64";
    default:
      throw new SetupError(
        "BAD_USAGE",
        `${arch()} machines are not supported`,
        "use an amd64 or arm64 machine",
      );
  }
}
