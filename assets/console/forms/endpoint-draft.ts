/** An endpoint as the form holds it, and as the vault takes it. */
import type { Endpoint, EndpointTrust, StartTls } from '../data/shapes.ts';

export type EndpointDraft = {
  readonly address: string;
  readonly certificate: string;
  readonly starttls: StartTls | '';
  readonly serverName: string;
  readonly trust: EndpointTrust;
  /** PEM, for the trust `bundle`. */
  readonly bundle: string;
  readonly interval: string;
};

export const blankEndpoint: EndpointDraft = {
  ...{ address: '', certificate: '', starttls: '', serverName: '', trust: 'auto', bundle: '' },
  interval: '1h',
};

/** The endpoint in the form; the vault does not return the certificates of its bundle. */
export function endpointDraft(endpoint: Endpoint): EndpointDraft {
  const { address, certificate, starttls, server_name, trust, interval } = endpoint;
  return {
    ...{ address, trust, interval, bundle: '', certificate: certificate ?? '', starttls: starttls ?? '' },
    serverName: server_name,
  };
}

/** The body that adds the endpoint, or with `before` what it changes. */
export function endpointBody(draft: EndpointDraft, before: EndpointDraft = blankEndpoint) {
  const changes: Record<string, string | null> = {};
  const set = (field: keyof EndpointDraft, name: string, value: string | null) => {
    if (draft[field] !== before[field]) changes[name] = value;
  };
  set('address', 'address', draft.address.trim());
  set('certificate', 'certificate', draft.certificate.trim() || null);
  set('starttls', 'starttls', draft.starttls || null);
  // Without a name, the vault chooses one.
  set('serverName', 'server_name', draft.serverName.trim() || null);
  set('interval', 'interval', draft.interval.trim());
  if (draft.trust !== 'bundle') set('trust', 'trust', draft.trust);
  else if (draft.bundle.trim() !== '' || before.trust !== 'bundle') changes.ca_pem = draft.bundle;
  return changes;
}
