/** The registered domains of names (public suffix list), by which CAs count certificates. */

/**
 * The registered domains of these names: `example.co.uk` for `*.www.example.co.uk`. Private suffixes count as public
 * ones, as they do at Let's Encrypt. Addresses and names without a registered domain are omitted.
 */
export async function registeredDomains(names: readonly string[]): Promise<string[]> {
  // Loaded on demand, because the list takes time and memory.
  const { getDomain } = await import('tldts');
  const options = { allowPrivateDomains: true };
  return [...new Set(names.map((name) => getDomain(name.replace(/^\*\./, ''), options)))].filter(
    (domain): domain is string => domain !== null,
  );
}
