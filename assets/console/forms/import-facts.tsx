/** What the vault understood of files that somebody wants to import. */
import type { ImportPreview } from '../administration-shapes.ts';
import { useNow } from '../clock.ts';
import { Notice } from '../components/notice.tsx';
import { Facts } from '../components/page.tsx';
import { Badge } from '../components/status.tsx';
import { Time } from '../components/time.tsx';

export function ImportFacts({ preview }: { readonly preview: ImportPreview }) {
  const { certificate, chain, warnings } = preview;
  const isOver = Date.parse(certificate.not_after) < useNow();
  return (
    <>
      {warnings.length > 0 && (
        <Notice tone="warning" title="Worth a look before it is stored">
          <ul>
            {warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </Notice>
      )}
      <section class="card stack" aria-label="What was understood">
        <h2>What was understood</h2>
        <Facts
          facts={[
            ['Domains', certificate.domains.join(', ') || <span class="quiet">none</span>],
            [
              'Expires',
              <span class="pair" key="expires">
                <Time at={certificate.not_after} show="both" />
                {isOver && <Badge tone="bad">expired</Badge>}
              </span>,
            ],
            ['Valid from', <Time key="from" at={certificate.not_before} show="both" />],
            ['Issued by', certificate.issuer],
            ['Subject', certificate.subject],
            ['Key', `${certificate.key_type}; the private key is there and belongs to it`],
            [
              'Chain',
              chain.length === 0
                ? 'none in the files'
                : chain.map(({ subject }) => <div key={subject}>{subject}</div>),
            ],
            [
              'SHA-256',
              <span key="sha" class="mono">
                {certificate.fingerprint_sha256}
              </span>,
            ],
          ]}
        />
      </section>
    </>
  );
}
