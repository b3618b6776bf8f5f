import type { TerminalSize } from "@forage/proto/forage/agent/v1/agent";
import type { World } from "../world.ts";

/**
 * Controls the user's terminal while a remote program draws on it. `close` restores its settings;
 * if the process ends without it, node restores them.
 */
export class Terminal {
  readonly #world: Pick<World, "stdin" | "stdout">;
  readonly #closers: (() => void)[] = [];

  constructor(world: Pick<World, "stdin" | "stdout">, { raw }: { readonly raw: boolean }) {
    this.#world = world;
    if (!raw) return;
    world.stdin.setRawMode?.(true);
    this.#closers.push(() => world.stdin.setRawMode?.(false));
  }

  size(): TerminalSize | undefined {
    const { columns, rows } = this.#world.stdout;
    // A terminal that does not know its size, such as a serial console, reports 0.
    return columns && rows ? { columns, rows } : undefined;
  }

  onResize(listener: (size: TerminalSize) => void): void {
    const onResize = (): void => {
      const size = this.size();
      if (size !== undefined) listener(size);
    };
    this.#world.stdout.on("resize", onResize);
    this.#closers.push(() => this.#world.stdout.off("resize", onResize));
  }

  close(): void {
    for (const close of this.#closers.splice(0)) close();
  }
}
