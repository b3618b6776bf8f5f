import { arch } from "node:os";
import { SetupError } from "./setup-error.ts";

/** This machine's architecture by the name that Go, OCI and Debian give it. */
export function goArchitecture(): "amd64" | "arm64" {
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
