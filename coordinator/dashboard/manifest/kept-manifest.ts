const KEY = "forage-manifest";
/** The longest manifest that is kept. Browsers store about 5 million characters for a site. */
export const MAX_KEPT_LENGTH = 256 * 1024;

/** The manifest that was on the page when its session ended, or the reason why it was not kept. */
export type KeptManifest =
  | { readonly type: "kept"; readonly text: string }
  | { readonly type: "secrets" }
  | { readonly type: "too-long" }
  | { readonly type: "no-room" };

/** The storage of one tab, which is deleted when the tab closes. */
export type TabStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/**
 * Keeps a manifest across a log-in. A manifest that may contain values of secrets is not stored.
 */
export function keepManifest(
  storage: TabStorage,
  text: string,
  holdsSecrets: (text: string) => boolean,
): void {
  storage.removeItem(KEY);
  if (text.trim() === "") return;
  if (text.length > MAX_KEPT_LENGTH) write(storage, { type: "too-long" });
  else write(storage, holdsSecrets(text) ? { type: "secrets" } : { type: "kept", text });
}

function write(storage: TabStorage, kept: KeptManifest): void {
  try {
    storage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // Other pages of the same site may have used up the storage.
    if (kept.type === "kept") write(storage, { type: "no-room" });
  }
}

/** Returns the kept manifest, and deletes it from the storage. */
export function takeManifest(storage: TabStorage): KeptManifest | undefined {
  const text = storage.getItem(KEY);
  storage.removeItem(KEY);
  return text === null ? undefined : (JSON.parse(text) as KeptManifest);
}

export function dropManifest(storage: TabStorage): void {
  storage.removeItem(KEY);
}
