import { useEffect, useRef, useState } from "preact/hooks";
import { open } from "../data/api.ts";
import { asApiError } from "../data/app.ts";
import { attempts, reconnectMs } from "../data/attempts.ts";
import { plural } from "../data/format.ts";
import { isRefusal } from "../data/read-messages.ts";
import { ContainerChoice } from "./container-choice.tsx";

/** The most lines on the page: browsers do not render more of them smoothly. */
const MAX_LINES = 5_000;
const DRAW_MS = 150;
/**
 * The number of failed attempts after which the page shows the error, for example because the node
 * is away.
 */
const MAX_FAILURES = 10;

export function Logs({
  namespace,
  pod,
  containers,
  main,
}: {
  readonly namespace: string;
  readonly pod: string;
  readonly containers: readonly string[];
  readonly main: string | undefined;
}) {
  const [container, setContainer] = useState("");
  const [previous, setPrevious] = useState(false);
  const [follow, setFollow] = useState(true);
  const [search, setSearch] = useState("");
  const { lines, problem, ended } = useLines({ namespace, pod, container, previous, follow });
  const found =
    search === "" ? lines : lines.filter((line) => line.toLowerCase().includes(search.toLowerCase()));
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [found.length, lines]);
  return (
    <section aria-label="Logs">
      <div class="toolbar">
        <input
          type="search"
          aria-label="Search in the log"
          placeholder="Search in the log  ( / )"
          value={search}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
        <ContainerChoice containers={containers} main={main} chosen={container} onChoose={setContainer} />
        <label>
          <input type="checkbox" checked={follow} onChange={() => setFollow(!follow)} /> Follow
        </label>
        <label>
          <input type="checkbox" checked={previous} onChange={() => setPrevious(!previous)} /> Previous run
        </label>
        <span class="quiet" role="status">
          {problem ?? `${plural(found.length, "line")}${ended ? ", end of the log" : ""}`}
        </span>
      </div>
      <pre
        class="log"
        ref={box}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {found.join("\n")}
      </pre>
    </section>
  );
}

interface LinesOptions {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly previous: boolean;
  readonly follow: boolean;
}

function useLines({ namespace, pod, container, previous, follow }: LinesOptions) {
  const [state, setState] = useState<{
    readonly lines: readonly string[];
    readonly problem?: string;
    readonly ended: boolean;
  }>({ lines: [], ended: false });
  useEffect(() => {
    const gone = new AbortController();
    const lines: string[] = [];
    let timer = 0;
    const show = (): void => {
      timer ||= window.setTimeout(() => {
        timer = 0;
        setState({ lines: [...lines], ended: false });
      }, DRAW_MS);
    };
    setState({ lines: [], ended: false });
    const take = (more: readonly string[]): void => {
      lines.push(...more);
      if (lines.length > MAX_LINES) lines.splice(0, lines.length - MAX_LINES);
      show();
    };
    const options = { namespace, pod, container, previous, follow };
    const read = (opened: () => void): Promise<void> =>
      readLines(options, gone.signal, take, () => {
        opened();
        // A reopened log begins with its newest lines.
        lines.length = 0;
      });
    const waitMs = (error: unknown, failures: number): number | undefined =>
      follow && !isRefusal(error) && failures <= MAX_FAILURES ? reconnectMs(failures) : undefined;
    attempts(read, { signal: gone.signal, waitMs }).then(
      () => {
        clearTimeout(timer);
        if (!gone.signal.aborted) setState({ lines: [...lines], ended: true });
      },
      (error: unknown) => {
        clearTimeout(timer);
        if (!gone.signal.aborted)
          setState({ lines: [...lines], problem: asApiError(error).message, ended: true });
      },
    );
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [namespace, pod, container, previous, follow]);
  return state;
}

async function readLines(
  { previous, follow, ...target }: LinesOptions,
  signal: AbortSignal,
  take: (lines: readonly string[]) => void,
  opened: () => void,
): Promise<void> {
  const query = new URLSearchParams({ ...target, previous: `${previous}`, follow: `${follow}` });
  const response = await open(`logs?${query}`, signal);
  opened();
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let chunk = await reader?.read(); chunk !== undefined && !chunk.done; chunk = await reader?.read()) {
    const lines = `${rest}${chunk.value}`.split("\n");
    rest = lines.pop() ?? "";
    if (lines.length > 0) take(lines);
  }
  if (rest !== "") take([rest]);
}
