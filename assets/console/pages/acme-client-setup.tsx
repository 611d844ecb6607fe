/**
 * How to set up a program as an ACME client that exists: the lines, without the HMAC key, which the vault does not show
 * again.
 */
import { acmeDirectoryUrl } from '../../../src/base/acme-recipes.ts';
import { ButtonLink } from '../components/button.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import type { AcmeClient } from '../data/administration-shapes.ts';
import { useResource } from '../data/resource.ts';
import { AcmeSetup } from '../forms/acme-setup.tsx';
import type { PageProps } from '../router.ts';

export function AcmeClientSetupPage({ params: { id = '' } }: PageProps) {
  const { data, error, reload } = useResource<AcmeClient>(`/acme-clients/${encodeURIComponent(id)}`);
  return (
    <Page
      title={data === undefined ? 'ACME client' : `Set up ${data.name}`}
      lead="Replace HMAC_KEY with the key that the vault showed when the client was created or rotated."
      actions={<ButtonLink href="/acme-clients">View all ACME clients</ButtonLink>}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && (
        <AcmeSetup
          client={data}
          directories={data.issuers.map((issuer) => ({
            issuer,
            url: acmeDirectoryUrl(location.origin, issuer),
          }))}
          hmacKey="HMAC_KEY"
        />
      )}
    </Page>
  );
}
