/**
 * The functions return what is wrong with the name, or undefined. The rules are Kubernetes' where the API follows
 * Kubernetes.
 */

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const ENV_NAME = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;
const CONFIG_KEY = /^[-._a-zA-Z0-9]+$/;

const MAX_LABEL_LENGTH = 63;
const MAX_SUBDOMAIN_LENGTH = 253;
/** The limit of a variable's name. The kernel's limit for one variable with its value is 128 KiB. */
const MAX_ENV_NAME_LENGTH = 1024;

export function dnsLabelProblem(text: string, maxLength = MAX_LABEL_LENGTH): string | undefined {
  if (text === "") return "must not be empty";
  if (text.length > maxLength) return `must have at most ${maxLength} characters`;
  return DNS_LABEL.test(text)
    ? undefined
    : "must be lower-case letters, digits and '-', and begin and end with a letter or digit";
}

/** Validates the names of secrets, claims, classes and similar objects: DNS labels separated by dots. */
export function dnsSubdomainProblem(text: string): string | undefined {
  if (text === "") return "must not be empty";
  if (text.length > MAX_SUBDOMAIN_LENGTH) return `must have at most ${MAX_SUBDOMAIN_LENGTH} characters`;
  return DNS_SUBDOMAIN.test(text)
    ? undefined
    : "must be lower-case letters, digits, '-' and '.', and begin and end with a letter or digit";
}

/** Validates the name of a container port, which is an IANA service name. */
export function portNameProblem(text: string): string | undefined {
  if (text.length > 15) return "must have at most 15 characters";
  if (!DNS_LABEL.test(text) || !/[a-z]/.test(text) || text.includes("--")) {
    return "must be lower-case letters, digits and single '-', with at least one letter";
  }
  return undefined;
}

/** Validates keys of labels, taints and topology: a name, with an optional DNS name and a slash before it. */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  const name = key.slice(slash + 1);
  if (prefix !== undefined && (prefix.length > MAX_SUBDOMAIN_LENGTH || !DNS_SUBDOMAIN.test(prefix)))
    return "has a prefix that is not a DNS name";
  if (name === "" || name.length > MAX_LABEL_LENGTH) return "must have a name of 1 to 63 characters";
  return LABEL_NAME.test(name)
    ? undefined
    : "must be letters, digits, '-', '_' and '.', and begin and end with a letter or digit";
}

export function labelValueProblem(value: string): string | undefined {
  if (value === "") return undefined;
  if (value.length > MAX_LABEL_LENGTH) return "must have at most 63 characters";
  return LABEL_NAME.test(value)
    ? undefined
    : "must be letters, digits, '-', '_' and '.', and begin and end with a letter or digit";
}

export function envNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (name.length > MAX_ENV_NAME_LENGTH) return `must have at most ${MAX_ENV_NAME_LENGTH} characters`;
  return ENV_NAME.test(name)
    ? undefined
    : "must be letters, digits, '_', '-' and '.', and not begin with a digit";
}

/** Validates keys of a secret or config map, which become file names. */
export function configKeyProblem(key: string): string | undefined {
  if (key === "") return "must not be empty";
  if (key.length > MAX_SUBDOMAIN_LENGTH) return `must have at most ${MAX_SUBDOMAIN_LENGTH} characters`;
  if (!CONFIG_KEY.test(key)) return "must be letters, digits, '-', '_' and '.'";
  return key === "." || key.startsWith("..") ? "must not be '.' or begin with '..'" : undefined;
}
