/** What will be needed to prove control of the names, said before the CA says it. */
import type { DnsProvider } from '../administration-shapes.ts';
import { type CertificateDraft, isWildcard, zoneOf } from '../certificate-checks.ts';
import { ButtonLink } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';

export function ProofNotes({
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
    return <Notice>{issuer} makes wildcards without any proof.</Notice>;
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
        The proof is a DNS record that the vault has to write. Without a provider, it works only where
        _acme-challenge is a CNAME into a zone that one manages.
      </Notice>
    );
  }
  if (byDns.length > 0) return <Notice>Proved by DNS records, which the vault writes and removes.</Notice>;
  if (domains.length === 0) return null;
  return (
    <Notice>
      {issuer} must reach the vault under each of these names
      {challenge === 'tls-alpn-01' ? ' on port 443.' : ' on port 80, unless a DNS provider manages them.'}
    </Notice>
  );
}
