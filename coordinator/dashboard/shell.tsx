import { useEffect, useMemo, useState } from "preact/hooks";
import { logout, type Me } from "./data/api.ts";
import { type App, AppContext, useTables } from "./data/app.ts";
import { Live } from "./data/live.ts";
import { href, type PageLocation, usePageLocation } from "./data/location.ts";
import { PAGES, pageOf } from "./pages.tsx";

interface Notice {
  readonly text: string;
  readonly tone: "good" | "bad";
}

const NOTICE_MS = 6_000;

export function Shell({ me, onLogout }: { readonly me: Me; readonly onLogout: () => void }) {
  const live = useMemo(() => new Live(), []);
  useEffect(() => live.start(), [live]);
  const [namespace, setNamespace] = useState("");
  const [notice, setNotice] = useState<Notice>();
  useEffect(() => {
    if (notice === undefined) return undefined;
    const timer = setTimeout(() => setNotice(undefined), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  const app: App = useMemo(
    () => ({ me, live, namespace, notify: (text, tone = "good") => setNotice({ text, tone }) }),
    [me, live, namespace],
  );
  const place = usePageLocation();
  useEffect(() => setNotice(undefined), [place]);
  useKeys();
  const end = (): void => void logout().finally(onLogout);
  return (
    <AppContext.Provider value={app}>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Side place={place} me={me} namespace={namespace} onNamespace={setNamespace} onLogout={end} />
      <main id="content" tabIndex={-1}>
        {pageOf(place)}
      </main>
      <div class={`notice ${notice?.tone ?? ""}`} role="status" hidden={notice === undefined}>
        {notice?.text}
      </div>
    </AppContext.Provider>
  );
}

function Side({
  place,
  me,
  namespace,
  onNamespace,
  onLogout,
}: {
  readonly place: PageLocation;
  readonly me: Me;
  readonly namespace: string;
  readonly onNamespace: (namespace: string) => void;
  readonly onLogout: () => void;
}) {
  const live = useTables();
  const present = listOf(place);
  const namespaces = [...new Set(live.rows("resources").map((row) => row.namespace))].sort();
  const connection = live.connection;
  return (
    <header class="side">
      <p class="brand">
        Forage <small>{me.cluster}</small>
      </p>
      <nav aria-label="Pages">
        {PAGES.map(({ name, title }) => (
          <a key={name} href={href(name)} aria-current={name === present ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <div class="side-end">
        <label>
          Namespace
          <select value={namespace} onChange={({ currentTarget }) => onNamespace(currentTarget.value)}>
            <option value="">all</option>
            {namespaces.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <p class={`connection ${connection}`} role="status">
          <span aria-hidden="true">●</span> {CONNECTIONS[connection]}
        </p>
        <button type="button" class="plain" onClick={onLogout} title={`token ${me.token}`}>
          Log out
        </button>
      </div>
    </header>
  );
}

/** Returns the list page to which the page of a single object belongs. */
function listOf({ path: [name = "fleet", , kind = ""] }: PageLocation): string {
  if (name === "nodes") return "fleet";
  if (name !== "resources") return name;
  if (kind === "job" || kind === "cron_job") return "jobs";
  return kind === "container_service" ? "workloads" : "network";
}

const CONNECTIONS = { connecting: "Loading", live: "Live", lost: "No connection" } as const;

/** Moves the focus to the filter of the page when "/" is pressed. */
function useKeys(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing =
        event.target instanceof HTMLElement && event.target.matches("input, textarea, select, .xterm *");
      if (typing || event.ctrlKey || event.metaKey || event.altKey || event.key !== "/") return;
      const filter = document.querySelector<HTMLInputElement>("input[type=search]");
      if (filter === null) return;
      event.preventDefault();
      filter.focus();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
