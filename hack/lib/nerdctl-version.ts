/** The version of nerdctl that is installed if the host has none. The constants below verify the download. */
export const NERDCTL_VERSION = "2.3.5";

/** The SHA-256 of `nerdctl-VERSION-linux-ARCH.tar.gz` in the published release. */
export const NERDCTL_ARCHIVE_SHA256: Readonly<Record<"amd64" | "arm64", string>> = {
  amd64: "de3206aeb7cbd5f20f5fb1f55c1e3bf2db1be567812a8a3f5e65eba2488347ee",
  arm64: "76ced9bd0d03f6140f9cf7b927958b654cb8d5ecd3c58af585d096c8bdf9d6c2",
};

/** Go's checksum of the module `github.com/containerd/nerdctl/v2`. Its go.sum pins all dependencies. */
export const NERDCTL_MODULE_SUM = "h1:auYeWpIM29NUvqWxFvar8HIbSVrGBn6dRPx45rrUApY=";

/** The oldest Go that compiles it, according to its go.mod. */
export const OLDEST_GO = [1, 26, 3] as const;

/** The Go that is downloaded if the host's is too old. It is a module, too, with Go's own checksums. */
export const GO_VERSION = "1.26.8";
export const GO_TOOLCHAIN_SUM: Readonly<Record<"amd64" | "arm64", string>> = {
  amd64: "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=",
  arm64: "h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=",
};
