/** About this vault: its version, health checks and object counts. */

import { Notice, Problem } from '../components/notice.tsx';
import { Facts, Page, Section } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import type { About } from '../data/administration-shapes.ts';
import { useResource } from '../data/resource.ts';
import { AboutBackup } from './about-backup.tsx';

const checkNames: Readonly<Record<string, string>> = {
  database: 'Database',
  master_key: 'Master key',
  renewal_engine: 'Renewal engine',
};

export function AboutPage() {
  const { data, error, reload } = useResource<About>('/about');
  return (
    <Page title="About" lead={data && `Certificate Vault ${data.version} at ${location.host}`}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && (
        <>
          {data.status !== 'ready' && (
            <Notice tone="bad" title="Health check failed">
              See the vault’s log for the reason.
            </Notice>
          )}
          <Section title="Health">
            <div class="card form">
              <Facts
                facts={Object.entries(data.checks).map(([name, state]) => [
                  checkNames[name] ?? name,
                  <Status key={name} status={state} />,
                ])}
              />
            </div>
          </Section>
          <AboutBackup backup={data.backup} />
          <Section title="Contents">
            <div class="card form">
              <Facts
                facts={[
                  ['Certificates', <Certificates key="certificates" counts={data.counts.certificates} />],
                  [
                    'API keys',
                    <a key="keys" href="/api-keys">
                      {data.counts.api_keys}
                    </a>,
                  ],
                  [
                    'Issuers',
                    <a key="issuers" href="/issuers">
                      {data.counts.issuers}
                    </a>,
                  ],
                  [
                    'DNS providers',
                    <a key="dns" href="/dns-providers">
                      {data.counts.dns_providers}
                    </a>,
                  ],
                  [
                    'ACME accounts',
                    <a key="acme" href="/acme-accounts">
                      {data.counts.acme_accounts}
                    </a>,
                  ],
                ]}
              />
            </div>
          </Section>
          <Section title="Files and API">
            <div class="card form">
              <Facts
                facts={[
                  [
                    'API description',
                    <a key="api" href="/api/v1/openapi.json">
                      openapi.json
                    </a>,
                  ],
                  [
                    'Client installer',
                    <a key="installer" href="/client/install.sh">
                      install.sh
                    </a>,
                  ],
                  [
                    'Installer checksum',
                    <a key="sum" href="/client/install.sh.sha256">
                      install.sh.sha256
                    </a>,
                  ],
                  [
                    'Private CA root',
                    <a key="root" href="/client/ca.crt">
                      ca.crt
                    </a>,
                  ],
                  [
                    'Script to trust the private CA',
                    <a key="trust" href="/client/install-ca.sh">
                      install-ca.sh
                    </a>,
                  ],
                ]}
              />
            </div>
          </Section>
        </>
      )}
    </Page>
  );
}

/** The total, then the count of each status other than valid. */
function Certificates({ counts }: { readonly counts: About['counts']['certificates'] }) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const others = Object.entries(counts).filter(([status, count]) => status !== 'valid' && count > 0);
  return (
    <span class="pair">
      <a href="/certificates">{total}</a>
      {others.map(([status, count]) => (
        <span key={status} class="pair">
          {count} <Status status={status} />
        </span>
      ))}
    </span>
  );
}
