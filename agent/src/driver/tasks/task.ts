import type { TaskExit } from "./exit.ts";
import type { TaskState } from "./task-state.ts";

/** A task that has a container. */
export class Task {
  readonly state: TaskState;
  readonly #ended: Promise<TaskExit>;
  readonly #forgotten = new AbortController();
  #exit: TaskExit | undefined;
  /** The removal in progress, which concurrent calls share. */
  removal: Promise<void> | undefined;

  constructor(state: TaskState, ended: Promise<TaskExit>) {
    this.state = state;
    this.#ended = ended.then((exit) => {
      this.#exit = exit;
      return exit;
    });
  }

  /** The end of the task. Undefined while it runs. */
  get exit(): TaskExit | undefined {
    return this.#exit;
  }

  get ended(): Promise<TaskExit> {
    return this.#ended;
  }

  /** Aborts when the task is destroyed. */
  get forgotten(): AbortSignal {
    return this.#forgotten.signal;
  }

  forget(): void {
    this.#forgotten.abort();
  }
}
