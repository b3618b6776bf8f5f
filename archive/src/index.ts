export { ArchiveError, type ArchiveErrorCode } from "./archive-error.ts";
export { BundleFile } from "./bundle-file.ts";
export { Directory } from "./directory.ts";
export { readTar, type TarEntry } from "./read-tar.ts";
export { type ReceiveOptions, receiveTree } from "./receive-tree.ts";
export { type ResolvedPath, resolveInRoot } from "./resolve.ts";
export { type SendOptions, sendTree } from "./send-tree.ts";
export { encodeHeader, paddingFor, TAR_END, type TarHeader } from "./tar-header.ts";
