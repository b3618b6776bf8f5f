const SUSPECT = "forage-session-doubt";
const END = "forage-session-end";

/** Reports that a request was refused, so that the session may have ended. */
export function suspectSession(): void {
  window.dispatchEvent(new Event(SUSPECT));
}

/** Calls the listener at each such report. Returns a function that removes it. */
export function onSuspectedSession(listener: () => void): () => void {
  return on(SUSPECT, listener);
}

/** Announces that the session has expired, just before its pages are removed. */
export function announceSessionEnd(): void {
  window.dispatchEvent(new Event(END));
}

/** Calls the listener when the session expires. Returns a function that removes it. */
export function onSessionEnd(listener: () => void): () => void {
  return on(END, listener);
}

function on(name: string, listener: () => void): () => void {
  window.addEventListener(name, listener);
  return () => window.removeEventListener(name, listener);
}
