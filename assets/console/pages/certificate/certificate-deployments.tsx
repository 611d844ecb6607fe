/** Where a certificate is installed and served, and which hosts would break if it expired now. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { ButtonLink } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Notice, Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Time } from '../../components/time.tsx';
import { type Deployments, useDeployments, useRollout } from '../../data/deployments.ts';
import { useResource } from '../../data/resource.ts';
import type { Certificate, Version } from '../../data/shapes.ts';
import { DeploymentList } from '../../fleet/deployment-list.tsx';
import { expiryOutcome } from '../../fleet/expiry-outcome.ts';
import { HostLink } from '../../fleet/host-link.tsx';
import { HostNames } from '../../fleet/host-names.tsx';
import { hostsText } from '../../fleet/hosts.ts';
import { useNow } from '../../text/clock.ts';
import { CertificateEndpoints } from './certificate-endpoints.tsx';

export function CertificateDeployments({ certificate }: { readonly certificate: Certificate }) {
  const path = `/certificates/${encodeURIComponent(certificate.name)}`;
  const { data, error, reload } = useDeployments(`${path}/deployments`);
  const versions = useResource<readonly Version[]>(`${path}/versions?limit=100`);
  const retry = () => Promise.all([reload(), versions.reload()]);
  return (
    <>
      {!data && (error ? <Problem error={error} retry={reload} /> : <Skeleton />)}
      {data?.items.length === 0 && <NoDeployments certificate={certificate} />}
      {data && data.items.length > 0 && (
        <div class="stack">
          {[error, versions.error].map(
            (one, index) => one && <Problem key={index} error={one} retry={retry} />,
          )}
          <RolloutLine path={path} />
          {data.isWhole && versions.data && <Outcome deployments={data} versions={versions.data} />}
          <div>
            <DeploymentList
              deployments={data}
              name={{ title: 'Host', cell: ({ host }) => <HostLink host={host} /> }}
            />
          </div>
        </div>
      )}
      <CertificateEndpoints certificate={certificate} />
    </>
  );
}

/** How far the current version has come. */
function RolloutLine({ path }: { readonly path: string }) {
  const { data, error, reload } = useRollout(path);
  if (error) return <Problem error={error} retry={reload} />;
  if (data === undefined || data.version === null) return null;
  const { version, issued_at, deployments, fetched, live, silent } = data;
  const count = (some: number) => `${some.toLocaleString()} of ${deployments.toLocaleString()}`;
  return (
    <ol class="rollout" aria-label={`Rollout of version ${version}`}>
      <li>
        Version {version} issued <Time at={issued_at} />
      </li>
      <li>fetched by {count(fetched)}</li>
      <li>
        live on {count(live)}
        {silent > 0 && `, ${silent.toLocaleString()} silent`}
      </li>
    </ol>
  );
}

function NoDeployments({ certificate: { name, owner } }: { readonly certificate: Certificate }) {
  if (owner !== null) {
    return (
      <Empty title="No deployments">
        <p>The ACME client {owner.name} installs this certificate itself, and does not report it.</p>
      </Empty>
    );
  }
  return (
    <Empty
      title="No deployments yet"
      actions={
        <ButtonLink needs="operator" href={`/api-keys/new?certificate=${encodeURIComponent(name)}`}>
          Create API key
        </ButtonLink>
      }
    >
      <p>
        Each job of the client installer reports which version of this certificate it installed, and whether
        the reload worked. Create an API key to get the installer command.
      </p>
      <p>
        For a place that cannot fetch it, add a <a href="/deploy-targets">deploy target</a>.
      </p>
      <p>
        Jobs that were installed with an older vault do not report; install them again. More in{' '}
        <span class="mono">docs/how-to/installed-where.md</span>.
      </p>
    </Empty>
  );
}

function Outcome({
  deployments: { items },
  versions,
}: {
  readonly deployments: Deployments;
  readonly versions: readonly Version[];
}) {
  const now = useNow();
  const ends = useMemo(
    () => new Map(versions.map(({ version, not_after }) => [version, not_after])),
    [versions],
  );
  const { breaking, current, older, expired, silent, waiting } = useMemo(() => {
    const endOf = (version: number) => {
      const end = ends.get(version);
      return end === undefined ? undefined : Date.parse(end);
    };
    return expiryOutcome(items, endOf, now);
  }, [items, ends, now]);
  const oldest = older.toSorted((one, other) => one.version - other.version)[0];
  const lines: readonly (readonly [readonly string[], ComponentChildren])[] = [
    [expired, expired.length === 1 ? 'has an expired version' : 'have an expired version'],
    [
      older.map(({ host }) => host),
      <>
        {older.length === 1
          ? 'has an older version, which expires'
          : 'have an older version; the first expires'}{' '}
        <Time at={oldest && ends.get(oldest.version)} none="at an unknown time" />
      </>,
    ],
    [current, current.length === 1 ? 'has the current version' : 'have the current version'],
    [
      silent,
      silent.length === 1 ? 'is silent, so its report may be old' : 'are silent, so their reports may be old',
    ],
    [waiting, waiting.length === 1 ? 'has not installed it yet' : 'have not installed it yet'],
  ];
  return (
    <Notice
      tone={expired.length > 0 ? 'bad' : older.length > 0 ? 'warning' : 'info'}
      title={
        breaking.length === 0
          ? 'No host would break if this certificate expired now'
          : `${hostsText(breaking.length)} would break if this certificate expired now`
      }
    >
      <ul>
        {lines.map(
          ([hosts, text], index) =>
            hosts.length > 0 && (
              <li key={index}>
                {hosts.length.toLocaleString()} {text}: <HostNames hosts={hosts} />
              </li>
            ),
        )}
      </ul>
    </Notice>
  );
}
