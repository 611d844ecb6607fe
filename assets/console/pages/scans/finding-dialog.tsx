/** What a server that a scan found has sent. */
import { Button } from '../../components/button.tsx';
import { CopyBlock } from '../../components/copy.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Problem } from '../../components/notice.tsx';
import { Facts } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { useResource } from '../../data/resource.ts';
import type { Finding, WholeFinding } from '../../data/scans.ts';

export function FindingDialog({
  finding,
  onClose,
}: {
  readonly finding: Finding;
  readonly onClose: () => void;
}) {
  const { data, error, reload } = useResource<WholeFinding>(`/endpoint-findings/${finding.id}`);
  const { address, starttls, certificate, issuer, names, fingerprint_sha256 } = finding;
  return (
    <Dialog title={address} onClose={onClose}>
      <div class="stack">
        <Facts
          facts={[
            ['Certificate', certificate ?? 'unknown to the vault'],
            ['Names', names.join(', ')],
            ['Signed by', issuer],
            ['Valid from', <Time key="from" at={finding.not_before} show="both" />],
            ['Expires', <Time key="to" at={finding.not_after} show="both" />],
            [
              'SHA-256 fingerprint',
              <span key="sha" class="mono">
                {fingerprint_sha256}
              </span>,
            ],
            ['STARTTLS', starttls],
            ['First seen', <Time key="first" at={finding.first_seen_at} show="both" />],
            ['Last seen', <Time key="last" at={finding.seen_at} show="both" />],
          ]}
        />
        {error && <Problem error={error} retry={reload} />}
        {data && data.chain_pem !== '' && <CopyBlock text={data.chain_pem} label="Certificates" />}
        <div class="dialog-buttons">
          <Button look="quiet" onClick={onClose}>
            Close
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
