const DOUBT = "forage-session-doubt";

/** Reports that a request or a stream was refused, possibly because the session has ended. */
export function doubtSession(): void {
  window.dispatchEvent(new Event(DOUBT));
}

/** Calls at each such report. Returns how to stop. */
export function onDoubtedSession(listener: () => void): () => void {
  window.addEventListener(DOUBT, listener);
  return () => window.removeEventListener(DOUBT, listener);
}
