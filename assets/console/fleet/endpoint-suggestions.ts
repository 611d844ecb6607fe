/** Endpoints that the names of a certificate suggest, the same as `vault endpoint suggest`. */
import { isAddress } from '../certificates/certificate-checks.ts';
import type { Endpoint, StartTls } from '../data/shapes.ts';

export type Suggestion = { readonly address: string; readonly starttls: StartTls | null };

/** The protocols that the first label of a name speaks of, with or without a number. */
const protocols: Readonly<Record<string, StartTls>> = {
  ...{ mx: 'smtp', smtp: 'smtp', imap: 'imap', pop: 'pop3', ldap: 'ldap', ftp: 'ftp', xmpp: 'xmpp' },
  ...{ postgres: 'postgres', mysql: 'mysql' },
};

const ports: Readonly<Record<StartTls, number>> = {
  ...{ smtp: 25, imap: 143, pop3: 110, ldap: 389, ftp: 21, xmpp: 5222, postgres: 5432, mysql: 3306 },
};

/** One for each name that is not a wildcard and has no endpoint yet. */
export function suggestionsFor(
  domains: readonly string[],
  known: readonly Pick<Endpoint, 'address'>[],
): Suggestion[] {
  const taken = new Set(known.map(({ address }) => address));
  return domains
    .filter((name) => !name.startsWith('*'))
    .map((name) => {
      const [, label = ''] = (!isAddress(name) && /^([a-z]+)\d*\./.exec(name)) || [];
      const starttls = Object.hasOwn(protocols, label) ? (protocols[label] ?? null) : null;
      const host = name.includes(':') ? `[${name}]` : name;
      return { address: `${host}:${starttls === null ? 443 : ports[starttls]}`, starttls };
    })
    .filter(({ address }) => !taken.has(address));
}
