/** Compares the names of certificates. */

/**
 * Those of `names` that no certificate with the names `by` is valid for, in their order; a wildcard covers one label
 * (RFC 9525 §6.3).
 */
export function uncoveredNames(names: readonly string[], by: readonly string[]): string[] {
  const held = new Set(by.map((name) => name.toLowerCase()));
  return names.filter((name) => {
    const wanted = name.toLowerCase();
    const dot = wanted.indexOf('.');
    const isHost = dot > 0 && !wanted.startsWith('*');
    return !held.has(wanted) && !(isHost && held.has(`*${wanted.slice(dot)}`));
  });
}
