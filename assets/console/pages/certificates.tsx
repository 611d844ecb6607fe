/** All certificates: tiles that count them by state, a picture of their expiries, and a list. */
import { useMemo } from 'preact/hooks';
import { groups } from '../certificates/certificate-health.ts';
import { filtered, issuersOf, labelsOf, sorted, sorts } from '../certificates/certificate-list.ts';
import { weekIn, weekText } from '../certificates/expiry-weeks.ts';
import { LabelChips } from '../certificates/label-chips.tsx';
import { Button, ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Select } from '../components/select.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge, Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { useCertificates } from '../data/certificates.ts';
import type { Certificates } from '../data/growing-list.ts';
import type { Certificate } from '../data/shapes.ts';
import { changeQuery, usePlace } from '../router.ts';
import { useNow } from '../text/clock.ts';
import { daysLeft } from '../text/time.ts';
import { CertificatePicture } from './certificate-picture.tsx';
import { CertificateTiles } from './certificate-tiles.tsx';

export function CertificatesPage() {
  const { data, error, reload } = useCertificates();
  const isEmpty = data?.items.length === 0;
  const actions = (
    <>
      <ButtonLink needs="whole-vault" href="/deleted-certificates">
        Deleted
      </ButtonLink>
      <ButtonLink needs="operator" href="/import">
        Import
      </ButtonLink>
      <ButtonLink look="primary" needs="operator" href="/new-certificate">
        Create certificate
      </ButtonLink>
    </>
  );
  return (
    <Page title="Certificates" actions={actions}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton lines={8} />}
      {isEmpty && <NoCertificates />}
      {data && !isEmpty && (
        <>
          <CertificateTiles {...data} />
          <CertificatePicture {...data} />
          <List {...data} />
        </>
      )}
    </Page>
  );
}

function NoCertificates() {
  return (
    <Empty
      title="No certificates yet"
      actions={
        <>
          <ButtonLink look="primary" needs="operator" href="/new-certificate">
            Create certificate
          </ButtonLink>
          <ButtonLink needs="operator" href="/import">
            Import certificate
          </ButtonLink>
        </>
      }
    >
      <p>
        The vault orders certificates from an ACME CA or issues them from its private CA, renews them on time,
        and serves them to the machines that need them. You can also import certificates that you already
        have.
      </p>
    </Empty>
  );
}

function List({ items, isWhole }: Certificates) {
  const { query } = usePlace();
  const [search = '', status = '', issuer = '', label = ''] = ['search', 'status', 'issuer', 'label'].map(
    (name) => query.get(name) ?? '',
  );
  const group = groups.find(({ id }) => id === query.get('group'))?.id ?? '';
  const week = weekIn(query.get('week') ?? '');
  const current = useNow();
  const now = week === '' ? 0 : current;
  const sort = query.get('sort') ?? 'trouble';
  const inOrder = useMemo(() => sorted(items, sort), [items, sort]);
  const rows = useMemo(
    () => filtered(inOrder, { search, status, issuer, label, group, week, now }),
    [inOrder, search, status, issuer, label, group, week, now],
  );
  const known = useMemo(() => issuersOf(items), [items]);
  const issuers = issuer === '' || known.includes(issuer) ? known : [issuer, ...known];
  const knownLabels = useMemo(() => labelsOf(items), [items]);
  const labels = label === '' || knownLabels.includes(label) ? knownLabels : [label, ...knownLabels];
  const isFiltered = rows.length !== items.length;
  const clear = () => changeQuery({ search: '', status: '', issuer: '', label: '', group: '', week: '' });
  return (
    <>
      <search class="list-filters">
        <TextField
          label="Search"
          type="search"
          placeholder="Name, domain or label"
          value={search}
          onValue={(value) => changeQuery({ search: value })}
        />
        <Select
          label="Status"
          value={status}
          onValue={(value) => changeQuery({ status: value, group: '' })}
          choices={[
            { value: '', label: 'Any' },
            ...['valid', 'expiring', 'expired', 'not_yet_valid', 'pending', 'disabled'].map((value) => ({
              value,
              label: value.replaceAll('_', ' '),
            })),
            { value: 'failing', label: 'renewal failed' },
          ]}
        />
        <Select
          label="Issuer"
          value={issuer}
          onValue={(value) => changeQuery({ issuer: value })}
          choices={[
            { value: '', label: 'Any' },
            ...issuers.map((value) => ({ value, label: value === '-' ? 'imported' : value })),
          ]}
        />
        {labels.length > 0 && (
          <Select
            label="Label"
            value={label}
            onValue={(value) => changeQuery({ label: value })}
            choices={[{ value: '', label: 'Any' }, ...labels.map((value) => ({ value, label: value }))]}
          />
        )}
        <Select
          label="Sort by"
          value={sort}
          onValue={(value) => changeQuery({ sort: value === 'trouble' ? '' : value })}
          choices={Object.entries(sorts).map(([value, label]) => ({ value, label }))}
        />
      </search>
      {week !== '' && (
        <button type="button" class="chip" onClick={() => changeQuery({ week: '' })}>
          {week !== 'expired' && <span class="quiet">Expiry:</span>}
          {weekText(week, now)}
          <span class="sr-only">, remove filter</span>
        </button>
      )}
      <p class="list-result" role="status">
        {isFiltered &&
          `${rows.length.toLocaleString()} of ${items.length.toLocaleString()} certificates match.`}
        {isFiltered && !isWhole && ' Loading the rest…'}
      </p>
      {rows.length === 0 ? (
        <Empty
          title={isWhole ? 'No matching certificates' : 'No matches so far'}
          actions={<Button onClick={clear}>Show all</Button>}
        />
      ) : (
        <Table caption="Certificates" columns={columns} rows={rows} keyOf={({ name }) => name} />
      )}
    </>
  );
}

const columns: readonly Column<Certificate>[] = [
  {
    title: 'Name',
    cell: ({ name, domains, labels }) => (
      <>
        <a href={`/certificates/${encodeURIComponent(name)}`}>{name}</a>
        <span class="under" title={domains.join(', ')}>
          {domains.join(', ')}
        </span>
        <LabelChips labels={labels} />
      </>
    ),
  },
  {
    title: 'Status',
    cell: ({ status, renewal }) => (
      <span class="pair">
        <Status status={status} />
        {renewal.last_error !== null && (
          <span title="The last renewal failed.">
            <Badge tone="warning">renewal failed</Badge>
          </span>
        )}
      </span>
    ),
  },
  {
    title: 'Issuer',
    cell: ({ issuer, owner }) => (
      <>
        {issuer ?? <span class="quiet">imported</span>}
        {owner && <span class="under">ACME client {owner.name}</span>}
      </>
    ),
  },
  { title: 'Days left', cell: (certificate) => <DaysLeft certificate={certificate} />, isNumber: true },
  {
    title: 'Last issued',
    cell: ({ current_version }) => <Time at={current_version?.created_at} />,
    isExtra: true,
  },
];

function DaysLeft({ certificate: { current_version: version } }: { readonly certificate: Certificate }) {
  const now = useNow();
  if (version === null) return <span class="quiet">—</span>;
  const days = daysLeft(Date.parse(version.not_after), now);
  return <span title={version.not_after}>{days.toLocaleString()}</span>;
}
