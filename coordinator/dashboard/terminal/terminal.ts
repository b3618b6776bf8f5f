import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { open, send } from "../data/api.ts";

interface TerminalTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

interface Output {
  readonly data?: string;
  readonly exit?: number;
  readonly error?: string;
}

/** Runs a shell in the element until it ends. Returns its exit code. Throws ApiError. */
export async function runTerminal(
  element: HTMLElement,
  target: TerminalTarget,
  signal: AbortSignal,
  onConnected: () => void,
): Promise<number | undefined> {
  const refuseStyles = acceptStyles();
  const terminal = new Terminal({
    cursorBlink: false,
    fontSize: 14,
    scrollback: 5_000,
    screenReaderMode: true,
    theme: { background: "#14171a", foreground: "#e6e9ec" },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  element.replaceChildren();
  terminal.open(element);
  fit.fit();
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(element);
  try {
    const { cols: columns, rows } = terminal;
    const response = await open("terminals", signal, { ...target, columns, rows });
    connectInput(terminal, `terminals/${response.headers.get("x-terminal")}`);
    onConnected();
    terminal.focus();
    return await showOutput(response, terminal);
  } finally {
    refuseStyles();
    resized.disconnect();
    if (signal.aborted) terminal.dispose();
  }
}

/**
 * Sends input in consecutive requests, each with everything typed since the last one, so that the
 * order is kept.
 */
function connectInput(terminal: Terminal, path: string): void {
  const encoder = new TextEncoder();
  let typed = "";
  let sending = Promise.resolve();
  const flush = async (): Promise<void> => {
    const text = typed;
    typed = "";
    if (text !== "") await send(path, { data: base64(encoder.encode(text)) });
  };
  const queue = (work: () => Promise<unknown>): void => {
    // The stream of the output reports the end of the terminal.
    sending = sending.then(work).then(
      () => undefined,
      () => undefined,
    );
  };
  terminal.onData((text) => {
    typed += text;
    queue(flush);
  });
  terminal.onResize(({ cols: columns, rows }) => queue(() => send(path, { columns, rows })));
}

async function showOutput(response: Response, terminal: Terminal): Promise<number | undefined> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let chunk = await reader?.read(); chunk !== undefined && !chunk.done; chunk = await reader?.read()) {
    const lines = `${rest}${chunk.value}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { data, exit, error } = JSON.parse(line) as Output;
      if (data !== undefined) await written(terminal, data);
      if (error !== undefined) throw new Error(error);
      if (exit !== undefined) return exit;
    }
  }
  return undefined;
}

/**
 * Resolves when the terminal has processed the output, so that a slow browser slows a fast command.
 */
function written(terminal: Terminal, data: string): Promise<void> {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return new Promise((resolve) => terminal.write(bytes, resolve));
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/**
 * Gives newly created style elements the nonce that the page's policy accepts, because the terminal
 * creates some. Returns a function that ends this.
 */
function acceptStyles(): () => void {
  const nonce = document.querySelector<HTMLMetaElement>("meta[name=style-nonce]")?.content ?? "";
  const createElement = document.createElement.bind(document);
  document.createElement = (tag: string, options?: ElementCreationOptions) => {
    const element = createElement(tag, options);
    if (tag === "style") element.nonce = nonce;
    return element;
  };
  // The original method is on the prototype.
  return () => Reflect.deleteProperty(document, "createElement");
}
