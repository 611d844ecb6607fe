/** The versions of a certificate, newest first, each with its files. */

import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Facts } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Badge } from '../../components/status.tsx';
import { Time } from '../../components/time.tsx';
import { useResource } from '../../data/resource.ts';
import type { Certificate, Version } from '../../data/shapes.ts';
import { Downloads } from './downloads.tsx';

const sources = {
  acme: 'issued by an ACME CA',
  'local-ca': 'issued by the private CA',
  import: 'imported',
} as const;

export function CertificateVersions({ certificate: { name } }: { readonly certificate: Certificate }) {
  const { data, error, reload } = useResource<readonly Version[]>(
    `/certificates/${encodeURIComponent(name)}/versions?limit=100`,
  );
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  if (data.length === 0) {
    return (
      <Empty title="No versions yet">
        <p>The first version appears here once it is issued.</p>
      </Empty>
    );
  }
  return (
    <ol class="trail">
      {data.map((version) => (
        <li key={version.version}>
          <div class="pair">
            <h2>Version {version.version}</h2>
            {version.current && <Badge tone="good">current</Badge>}
            <span class="quiet">
              <Time at={version.created_at} />, {sources[version.source]}
            </span>
          </div>
          <details open={version.current}>
            <summary>Files and details</summary>
            <div class="stack">
              <Downloads name={name} version={version.version} keyHolder={version.key_holder} />
              <Facts
                facts={[
                  ['Valid from', <Time key="from" at={version.not_before} show="both" />],
                  ['Expires', <Time key="to" at={version.not_after} show="both" />],
                  ['Domains', version.domains.join(', ')],
                  ['Key type', version.key_type],
                  ['Signed by', version.issuer],
                  [
                    'Serial number',
                    <span key="serial" class="mono">
                      {version.serial}
                    </span>,
                  ],
                  [
                    'SHA-256 fingerprint',
                    <span key="hash" class="mono">
                      {version.fingerprint_sha256}
                    </span>,
                  ],
                ]}
              />
            </div>
          </details>
        </li>
      ))}
    </ol>
  );
}
