/** The texts about endpoints that became unhealthy, and about those that are current again. */
import type { UnhealthyState } from '../../db/schema/schema-endpoints.ts';
import { type Data, fact, section, type Words } from './notification-set-aside.ts';

/** A change of one endpoint, as receivers see it. */
export type EndpointChange = {
  readonly id: number;
  /** `host:port` */
  readonly address: string;
  readonly server_name: string;
  /** null for one that is only watched. */
  readonly certificate: string | null;
  readonly state: UnhealthyState | 'current';
  /** The state that was notified before. */
  readonly previous_state: UnhealthyState | 'current';
  /** Why it is not current. */
  readonly reason: string | null;
  readonly fingerprint_sha256: string | null;
  readonly not_after: string | null;
  /** RFC 3339. */
  readonly checked_at: string | null;
};

/** The data of a notice: the first changes of a check, and how many there are in each state. */
export type EndpointChanges = {
  readonly counts: Readonly<Partial<Record<EndpointChange['state'], number>>>;
  readonly endpoints: readonly EndpointChange[];
};

/** What each state says, as a clause. */
export const stateMeanings: Readonly<Record<UnhealthyState, string>> = {
  unreachable: 'no certificate in two checks',
  unknown: 'another certificate is served',
  outdated: 'an older version is served a day after the renewal',
  untrusted: 'clients reject the certificate',
  expiring: 'the certificate expires soon or has expired',
};

/** The text about endpoints that became unhealthy. */
export function endpointUnhealthyWords(data: Data): Words {
  const { counts, endpoints } = data as unknown as EndpointChanges;
  const states = (Object.keys(stateMeanings) as UnhealthyState[]).filter((state) => (counts[state] ?? 0) > 0);
  const all = totalOf(counts);
  const [first] = endpoints;
  const list = states.map((state) => `${counts[state]} ${state}`).join(', ');
  return {
    subject:
      all === 1 && first !== undefined
        ? `${endpointPlace(first)}: ${first.state}${first.reason === null ? '' : `, ${first.reason}`}`
        : `${all} endpoints need attention: ${list}`,
    lines: [
      ...states.flatMap((state) =>
        section(
          `${state.charAt(0).toUpperCase()}${state.slice(1)}: ${stateMeanings[state]}`,
          endpoints.filter((one) => one.state === state).map(changeText),
          counts[state],
        ),
      ),
      '',
      'List them, and check them again:',
      '',
      ...states.map((state) => `  vault endpoint list --state ${state}`),
      '  vault endpoint check',
    ].slice(1),
  };
}

/** The text about endpoints that are current again. */
export function endpointHealthyWords(data: Data): Words {
  const { counts, endpoints } = data as unknown as EndpointChanges;
  const all = totalOf(counts);
  const [first] = endpoints;
  if (all === 1 && first !== undefined) {
    return {
      subject: `${endpointPlace(first)}: current again`,
      lines: [
        `Endpoint ${first.address} is current again.`,
        '',
        ...fact('Certificate', first.certificate),
        ...fact('Was', first.previous_state),
        ...fact('Valid until', first.not_after),
      ],
    };
  }
  return {
    subject: `${all} endpoints are current again`,
    lines: section('Current again', endpoints.map(changeText), all).slice(1),
  };
}

function totalOf(counts: EndpointChanges['counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** `web at www.example.com:443` */
export function endpointPlace({
  certificate,
  address,
}: Pick<EndpointChange, 'certificate' | 'address'>): string {
  return certificate === null ? address : `${certificate} at ${address}`;
}

function changeText(change: EndpointChange): string {
  const more = change.state === 'current' ? `was ${change.previous_state}` : change.reason;
  return `${endpointPlace(change)}${more === null ? '' : `: ${more}`}`;
}
