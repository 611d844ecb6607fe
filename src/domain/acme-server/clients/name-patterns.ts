/**
 * Which names an ACME client may order: a DNS name, `*.` and a name for every name below it, the wildcard included, `*`
 * for every DNS name, or an IP address or network for addresses (RFC 8738). An address never falls under a pattern of
 * names.
 */
import { type Identifier, isAddress, parseIdentifier } from '../../../base/identifier.ts';
import { type IpNetwork, isInside, parseIpAddress, parseIpNetwork } from '../../../net/ip-network.ts';

declare const brand: unique symbol;

/** A normalized pattern: lower case, A-labels, the shortest form of addresses. */
export type NamePattern = string & { readonly [brand]: 'NamePattern' };

/** The rule in words, for error messages. */
export const namePatternRule =
  'write a name such as www.example.com, "*.example.com" for every name below example.com, "*" for every DNS name, or an IP address or network such as 10.0.0.0/8';

/** Every pattern matches it; as JSON Schema says it, for generated clients. */
export const namePatternPattern = '^(\\*|(\\*\\.)?[^\\x00-,;-@\\[-`{-\\x7f]+)$';

/**
 * The pattern in its normal form, or what is wrong with the text, as the end of a sentence that begins with the text.
 */
export function parseNamePattern(text: string): { pattern: NamePattern } | { refusal: string } {
  const written = text.trim();
  const network = parseIpNetwork(written);
  if (network !== undefined) return { pattern: network.text as NamePattern };
  if (written === '*') return { pattern: '*' as NamePattern };
  const isBelow = written.startsWith('*.');
  const name = parseIdentifier(isBelow ? written.slice(2) : written);
  if (name === undefined || name.startsWith('*.') || isAddress(name)) return { refusal: refusalOf(written) };
  return { pattern: (isBelow ? `*.${name}` : name) as NamePattern };
}

function refusalOf(text: string): string {
  if (text === '') return `is empty: ${namePatternRule}`;
  if (text.includes('/') && parseIpAddress(text.slice(0, text.indexOf('/'))) !== undefined) {
    return 'is not a network: the prefix length is wrong, or bits after the prefix are set; write 10.0.0.0/8, not 10.1.2.3/8';
  }
  if (text.includes('://') || text.includes('/')) return `is a URL or a path: ${namePatternRule}`;
  if (text.startsWith('.'))
    return `begins with a dot: write "*${text}" for every name below ${text.slice(1)}`;
  if (text.replace(/^\*\./, '').includes('*')) {
    return 'has "*" in the middle: a wildcard is only the whole first label, as in "*.example.com"';
  }
  if (/:\d{1,5}$/.test(text)) return `has a port: certificates have none; ${namePatternRule}`;
  return `is not a pattern of names: ${namePatternRule}`;
}

/** The patterns of a client, so that checking a name takes no longer for thousands of them. */
export class NamePatterns {
  readonly texts: readonly string[];
  readonly #names = new Set<string>();
  /** The names whose every name below is permitted. */
  readonly #above = new Set<string>();
  readonly #networks: IpNetwork[] = [];
  readonly #permitsAllNames: boolean;

  /** `texts` are stored patterns; what is none permits nothing. */
  constructor(texts: readonly string[]) {
    this.texts = texts;
    this.#permitsAllNames = texts.includes('*');
    for (const text of texts) {
      const network = parseIpNetwork(text);
      if (network !== undefined) this.#networks.push(network);
      else if (text.startsWith('*.')) this.#above.add(text.slice(2));
      else this.#names.add(text);
    }
  }

  /** Whether a certificate may have the identifier. */
  permits(identifier: Identifier): boolean {
    const address = parseIpAddress(identifier);
    // An IPv4 address in the form of IPv6 is no address of an IPv4 network to verifiers, which compare bytes.
    if (address !== undefined) {
      return !(address.family === 4 && identifier.includes(':')) && isInside(address, this.#networks);
    }
    if (this.#permitsAllNames) return true;
    return this.#names.has(identifier) || this.#isBelow(identifier);
  }

  /** Whether the name, or wildcard, is below one of the names. */
  #isBelow(name: string): boolean {
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
      if (this.#above.has(name.slice(dot + 1))) return true;
    }
    return false;
  }
}
