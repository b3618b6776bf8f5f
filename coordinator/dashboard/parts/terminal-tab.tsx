import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../data/app.ts";
import { ContainerChoice } from "./container-choice.tsx";

/** Shows a shell in the pod. The code of the terminal is loaded when the tab opens. */
export function TerminalTab({
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
  const box = useRef<HTMLDivElement>(null);
  const [container, setContainer] = useState("");
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState("Connecting");
  useEffect(() => {
    const gone = new AbortController();
    setState("Connecting");
    import("../terminal/terminal.ts")
      .then(({ runTerminal }) => {
        if (box.current === null || gone.signal.aborted) return undefined;
        return runTerminal(box.current, { namespace, pod, container }, gone.signal, () =>
          setState("Connected"),
        );
      })
      .then(
        (code) => setState(code === undefined ? "Ended" : `Ended with exit code ${code}`),
        (error: unknown) => {
          if (!gone.signal.aborted) setState(asApiError(error).message);
        },
      );
    return () => gone.abort();
  }, [namespace, pod, container, turn]);
  return (
    <section aria-label="Terminal">
      <div class="toolbar">
        <ContainerChoice containers={containers} main={main} chosen={container} onChoose={setContainer} />
        <button type="button" onClick={() => setTurn(turn + 1)}>
          New shell
        </button>
        <span class="quiet" role="status">
          {state}
        </span>
      </div>
      <div class="terminal" ref={box} />
    </section>
  );
}
