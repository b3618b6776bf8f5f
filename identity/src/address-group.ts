/** Returns the key under which limits count a remote address. One host usually owns a whole IPv6 /64, so its addresses count as one. */
export function addressGroup(address: string): string {
  if (!address.includes(":") || address.startsWith("::ffff:")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head.split(":").filter((part) => part !== "");
  if (tail === undefined) return groups.slice(0, 4).join(":");
  const after = tail.split(":").filter((part) => part !== "");
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => "0");
  return [...groups, ...zeros, ...after].slice(0, 4).join(":");
}
