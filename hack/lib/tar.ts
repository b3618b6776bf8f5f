import { encodeHeader, paddingFor, TAR_END } from "../../archive/src/tar-header.ts";

/** A file, link or directory of an archive. Its owner is root and its time 0, so equal content gives equal bytes. */
export type TarEntry =
  | { readonly type: "file"; readonly path: string; readonly content: Uint8Array; readonly mode?: number }
  | { readonly type: "link"; readonly path: string; readonly target: string }
  | { readonly type: "directory"; readonly path: string; readonly mode?: number };

/** Packs the entries in the given order as a POSIX archive. */
export function packTar(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.type === "file" ? Buffer.from(entry.content) : Buffer.alloc(0);
    const header = encodeHeader({
      path: entry.path.replace(/\/$/, ""),
      type: entry.type,
      mode: modeOf(entry),
      modifiedMs: 0,
      sizeBytes: content.length,
      target: entry.type === "link" ? entry.target : "",
    });
    return [header, content, paddingFor(content.length)];
  });
  return Buffer.concat([...blocks, TAR_END]);
}

function modeOf(entry: TarEntry): number {
  if (entry.type === "link") return 0o777;
  return entry.mode ?? (entry.type === "directory" ? 0o755 : 0o644);
}
