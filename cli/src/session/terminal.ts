import type { TerminalSize } from "@forage/proto/forage/agent/v1/agent";
import type { World } from "../world.ts";

/**
 * The user's terminal while a program elsewhere draws on it. `close` gives it back as it was; should the process end
 * without, node does.
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
    // A terminal that doesn't know its size, as a serial console, says 0.
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
