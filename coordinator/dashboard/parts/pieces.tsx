import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Tone } from "../../src/dashboard/live/rows.ts";
import type { ApiError } from "../data/api-error.ts";
import { percent } from "../data/format.ts";

const MARKS: Readonly<Record<Tone, string>> = { good: "●", busy: "◐", bad: "▲", off: "○" };

/**
 * A word with a colour and a shape. The shape carries the meaning for users who can't distinguish
 * colours.
 */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span class="mark" aria-hidden="true">
        {MARKS[tone]}
      </span>
      {children}
    </span>
  );
}

/** A bar that is filled in proportion to a share. */
export function Bar({
  part,
  whole,
  label,
  text,
}: {
  readonly part: number;
  readonly whole: number;
  readonly label: string;
  readonly text?: string;
}) {
  const full = percent(part, whole);
  return (
    <span class="bar" title={`${label}: ${text ?? `${full} %`}`}>
      <span
        class={full > 90 ? "fill high" : "fill"}
        style={{ width: `${Math.min(full, 100)}%` }}
        aria-hidden="true"
      />
      <span class="bar-text">{text ?? `${full} %`}</span>
    </span>
  );
}

export function Tile({
  title,
  value,
  about,
  tone,
}: {
  readonly title: string;
  readonly value: string;
  readonly about?: string;
  readonly tone?: Tone;
}) {
  return (
    <div class={`tile ${tone ?? ""}`}>
      <dt>{title}</dt>
      <dd>
        {value}
        {about && <small>{about}</small>}
      </dd>
    </div>
  );
}

export function Failure({ error }: { readonly error: ApiError | undefined }) {
  if (error === undefined) return null;
  return (
    <div class="failure" role="alert">
      <p>{error.message}</p>
      {error.violations.length > 0 && (
        <ul>
          {error.violations.map(({ field, description }) => (
            <li key={field + description}>
              <code>{field}</code> {description}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/**
 * Shows a modal dialog while it is rendered. Escape closes it, and the focus returns to the element
 * that had it before.
 */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return (
    <dialog ref={ref} onClose={onClose} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

export function Tabs({
  names,
  present,
  hrefOf,
  label,
}: {
  readonly names: readonly string[];
  readonly present: string;
  readonly hrefOf: (name: string) => string;
  readonly label: string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {names.map((name) => (
        <a key={name} href={hrefOf(name)} aria-current={name === present ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

export function Head({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Forage`;
  }, [title]);
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {about !== undefined && <p>{about}</p>}
      </div>
      <div class="actions">{children}</div>
    </header>
  );
}

export function Field({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
