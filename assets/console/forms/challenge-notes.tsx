/** Notes on what the challenges of a new certificate need, shown before the order. */

import { type CertificateDraft, isWildcard, zoneOf } from '../certificates/certificate-checks.ts';
import { ButtonLink } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import type { DnsProvider } from '../data/administration-shapes.ts';

export function ChallengeNotes({
  draft: { domains, challenge, issuer },
  isAcme,
  providers,
}: {
  readonly draft: CertificateDraft;
  readonly isAcme: boolean;
  readonly providers: readonly DnsProvider[];
}) {
  const wildcards = domains.filter(isWildcard);
  if (!isAcme) {
    if (wildcards.length === 0) return null;
    return <Notice>{issuer} issues wildcards without validation.</Notice>;
  }
  const byDns = challenge === 'dns-01' ? domains : wildcards;
  const zones = providers.flatMap((provider) => provider.zones);
  const uncovered = byDns.filter((domain) => zoneOf(domain, zones) === undefined);
  if (challenge !== 'dns-persist-01' && uncovered.length > 0) {
    return (
      <Notice
        tone="warning"
        title={`No DNS provider manages ${uncovered.join(', ')}`}
        actions={<ButtonLink href="/dns-providers">Add a DNS provider</ButtonLink>}
      >
        Validation needs a DNS record that the vault creates. Without a provider for the zone, it works only
        if _acme-challenge is a CNAME to a zone that a provider manages.
      </Notice>
    );
  }
  if (byDns.length > 0) return <Notice>The vault creates and removes the DNS records for validation.</Notice>;
  if (domains.length === 0) return null;
  return (
    <Notice>
      {issuer} must be able to reach the vault at each of these domains
      {challenge === 'tls-alpn-01' ? ' on port 443.' : ' on port 80, unless a DNS provider manages the zone.'}
    </Notice>
  );
}
