/** The preview of a replacement: its certificates, who is affected, and what requires action. */
import type { ComponentChildren } from 'preact';
import { byObstacle, certificateCount, fewNames } from '../../certificates/replacement-words.ts';
import { Empty } from '../../components/empty.tsx';
import { Notice } from '../../components/notice.tsx';
import { Section } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { AffectedCertificate, ReplacementPreview } from '../../data/replacement-shapes.ts';

export function AffectedCertificates({
  preview: { replaced, obstructed, certificates },
  children,
}: {
  readonly preview: ReplacementPreview;
  /** The button that starts the replacement; left out if nothing can be replaced. */
  readonly children: ComponentChildren;
}) {
  const total = replaced + obstructed;
  if (total === 0) {
    return (
      <Empty title="No matches">
        <p>No certificates with an issued version match this selection.</p>
      </Empty>
    );
  }
  return (
    <Section title="Affected certificates" actions={replaced > 0 && children}>
      <div class="stack">
        {obstructed > 0 && (
          <Notice tone="warning">
            <p>The vault cannot replace {certificateCount(obstructed)}. The table shows why.</p>
          </Notice>
        )}
        {certificates.length < total && (
          <p class="quiet small">
            Showing {certificates.length.toLocaleString()} of {certificateCount(total)}.
          </p>
        )}
        <Table
          caption="Affected certificates"
          rows={byObstacle(certificates)}
          keyOf={({ certificate }) => certificate}
          columns={columns}
        />
      </div>
    </Section>
  );
}

const columns: readonly Column<AffectedCertificate>[] = [
  {
    title: 'Certificate',
    cell: ({ certificate, obstacle }) => (
      <>
        <a href={`/certificates/${encodeURIComponent(certificate)}`}>{certificate}</a>
        {obstacle !== null && (
          <div class="reason" title={obstacle}>
            Not replaced: {obstacle}
          </div>
        )}
      </>
    ),
  },
  { title: 'Version', cell: ({ version }) => version },
  { title: 'Expires', cell: ({ not_after }) => <Time at={not_after} />, isExtra: true },
  { title: 'Hosts', cell: ({ hosts }) => names(hosts) },
  { title: 'Endpoints', cell: ({ endpoints }) => names(endpoints) },
  { title: 'API keys', cell: ({ api_keys }) => names(api_keys) },
];

function names(all: readonly string[]) {
  if (all.length === 0) return <span class="quiet">none</span>;
  return <span title={all.join(', ')}>{fewNames(all)}</span>;
}
