import * as z from "zod";

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const words = () => z.array(z.string().min(1).max(253)).max(100).default([]);

/** A receiver of events over HTTP. */
const NOTIFICATION_SCHEMA = z.strictObject({
  /**
   * The name in logs, metrics and messages. The position of the receiver is stored under this name.
   */
  name: z.string().regex(NAME, "must be 1 to 63 lowercase letters, digits and dashes"),
  /** The https URL to which messages are posted. Redirects are not followed. */
  url: z
    .string()
    .max(2_048)
    .refine(
      (text) => isWebhookUrl(text),
      "must be an https URL without a user and a password; http is for loopback addresses",
    ),
  /**
   * The file with the key that signs messages, of at least 16 bytes. Only the coordinator may read
   * it.
   */
  secretFile: z.string().startsWith("/"),
  /** The severities of events to send. */
  types: z
    .array(z.enum(["Normal", "Warning"]))
    .min(1)
    .max(2)
    .default(["Warning"]),
  /** The reasons of events to send, such as RolledBack; empty means all. */
  reasons: words(),
  /**
   * The kinds of objects whose events are sent, such as node or container_service; empty means all.
   */
  kinds: words(),
  /** The namespaces whose events are sent; empty means all, and also nodes and the cluster. */
  namespaces: words(),
});

export const NOTIFICATIONS_SCHEMA = z
  .array(NOTIFICATION_SCHEMA)
  .max(16)
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "has two entries with one name")
  .default([]);

export type NotificationSettings = z.infer<typeof NOTIFICATION_SCHEMA>;

function isWebhookUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
