/** The vault's preview of a certificate that is about to be imported. */

import { Notice } from '../components/notice.tsx';
import { Facts } from '../components/page.tsx';
import { Badge } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import type { ImportPreview } from '../data/administration-shapes.ts';
import { useNow } from '../text/clock.ts';

export function ImportFacts({ preview }: { readonly preview: ImportPreview }) {
  const { certificate, chain, warnings } = preview;
  const isOver = Date.parse(certificate.not_after) < useNow();
  return (
    <>
      {warnings.length > 0 && (
        <Notice tone="warning" title="Check before you import">
          <ul>
            {warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </Notice>
      )}
      <section class="card stack" aria-label="Preview">
        <h2>Preview</h2>
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
            ['Signed by', certificate.issuer],
            ['Subject', certificate.subject],
            ['Key type', certificate.key_type],
            ['Private key', 'included, matches the certificate'],
            [
              'Chain',
              chain.length === 0
                ? 'not included'
                : chain.map(({ subject }) => <div key={subject}>{subject}</div>),
            ],
            [
              'SHA-256 fingerprint',
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
