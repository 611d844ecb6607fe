/** The registered domain of a name, by the public suffix list that CAs count certificates by. */

/**
 * What a CA takes for the registered domain of these names: `example.co.uk` for `*.www.example.co.uk`. Private suffixes
 * count as public ones, as they do for Let's Encrypt; addresses and names without a registered domain are left out.
 */
export async function registeredDomains(names: readonly string[]): Promise<string[]> {
  // Loaded only when something is limited: the list takes time and memory.
  const { getDomain } = await import('tldts');
  const options = { allowPrivateDomains: true };
  return [...new Set(names.map((name) => getDomain(name.replace(/^\*\./, ''), options)))].filter(
    (domain): domain is string => domain !== null,
  );
}
