import { useState } from "preact/hooks";
import { send } from "../data/api.ts";
import { asApiError, may, useApp } from "../data/app.ts";

export interface PodPortsProps {
  readonly namespace: string;
  readonly pod: string;
  /** The ports that the pod declares. */
  readonly ports: readonly number[];
}

/**
 * Buttons that open ports of the pod in a new tab, through the coordinator and each under its own
 * host name.
 */
export function PodPorts({ namespace, pod, ports }: PodPortsProps) {
  const app = useApp();
  const [other, setOther] = useState("");
  if (!app.me.opensPorts || !may(app, "editor", namespace)) return null;
  const open = (port: number): void => {
    send<{ url: string }>("ports", { namespace, pod, port }).then(
      ({ url }) => window.open(url, "_blank", "noopener"),
      (error: unknown) => app.notify(asApiError(error).message, "bad"),
    );
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    open(Number(other));
  };
  return (
    <section class="card" aria-label="Ports">
      <h2>Ports</h2>
      <form class="toolbar" onSubmit={submit}>
        {ports.map((port) => (
          <button key={port} type="button" onClick={() => open(port)}>
            Open port {port}
          </button>
        ))}
        <label>
          Another port{" "}
          <input
            type="number"
            min={1}
            max={65_535}
            required
            value={other}
            onInput={({ currentTarget }) => setOther(currentTarget.value)}
          />
        </label>
        <button type="submit">Open</button>
      </form>
    </section>
  );
}
