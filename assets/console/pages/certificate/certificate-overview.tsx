/** The state of a certificate, its next renewal, its files and its facts. */
import type { ComponentChildren } from 'preact';
import { LabelChips } from '../../certificates/label-chips.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { Notice } from '../../components/notice.tsx';
import { Facts, Section } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import type { Certificate, Renewal, Settings } from '../../data/shapes.ts';
import { useNow } from '../../text/clock.ts';
import { daysLeft } from '../../text/time.ts';
import { Downloads } from './downloads.tsx';
import { RenewalSteps } from './renewal-steps.tsx';

const usageNames = {
  server: 'servers',
  client: 'clients',
  both: 'servers and clients',
} as const;

export function CertificateOverview({
  certificate,
  settings,
  renewal,
}: {
  readonly certificate: Certificate;
  readonly settings: Settings | undefined;
  /** The newest one. */
  readonly renewal: Renewal | undefined;
}) {
  const now = useNow();
  const version = certificate.current_version;
  const isOpen = renewal?.status === 'queued' || renewal?.status === 'running';
  return (
    <>
      {renewal && (isOpen || isFresh(renewal, now)) && (
        <div class="card">
          <RenewalSteps renewal={renewal} />
        </div>
      )}
      {!isOpen && <Next certificate={certificate} settings={settings} />}
      {version && (
        <Section title="Files">
          <Downloads
            name={certificate.name}
            version={version.version}
            keyHolder={version.key_holder}
            isCurrent
          />
        </Section>
      )}
      <Section title="Details">
        <Facts
          facts={[
            ['Domains', certificate.domains.join(', ') || undefined],
            ['URIs', settings?.uris.join(', ') || undefined],
            ['Email addresses', settings?.emails.join(', ') || undefined],
            ['Labels', certificate.labels.length > 0 && <LabelChips labels={certificate.labels} />],
            ['Subject', settings?.subject.join(', ') || undefined],
            ['Issuer', certificate.issuer ?? 'none (imported)'],
            ['ACME client', certificate.owner?.name],
            ['Fallback issuer', settings?.fallback_issuer],
            ['Signed by', version?.issuer],
            ['Valid from', version && <Time at={version.not_before} show="both" />],
            ['Expires', version && <Time at={version.not_after} show="both" />],
            ['Key type', version?.key_type ?? certificate.key_type],
            ['Private key', certificate.key_holder === 'client' ? 'held by the client' : 'held by the vault'],
            ['Key rotation', settings && certificate.owner === null && keyRotation(settings)],
            ['Public key pin', copied('pin', settings?.public_key_pin)],
            ['Pin after the next renewal', copied('pin', settings?.next_public_key_pin)],
            ['Challenge', settings?.challenge],
            ['Profile', settings?.profile],
            ['Usage', settings && usageNames[settings.usage]],
            ['Requested lifetime', settings?.lifetime],
            ['Serial number', copied('serial number', version?.serial)],
            ['SHA-256 fingerprint', copied('fingerprint', version?.fingerprint_sha256)],
            ['Created', <Time key="created" at={certificate.created_at} show="both" />],
          ]}
        />
      </Section>
    </>
  );
}

/** A long value with a button that copies it. */
function copied(what: string, text: string | null | undefined) {
  if (text == null) return undefined;
  return (
    <span class="copied">
      <span class="mono">{text}</span>
      <CopyButton text={text} name={`Copy the ${what}`} />
    </span>
  );
}

/** What happens to the key at a renewal. */
function keyRotation({ csr, reuse_key }: Settings): string {
  if (csr !== null) return 'when the client sends another CSR';
  return reuse_key ? 'keep the key' : 'new key at each renewal';
}

/**
 * A renewal stays on the overview for five minutes after it finishes, so that the person who requested it sees the
 * result.
 */
function isFresh({ finished_at }: Renewal, now: number): boolean {
  return finished_at !== null && now - Date.parse(finished_at) < 5 * 60_000;
}

/** A notice with what happens next. Its color shows how urgent it is. */
function Next({
  certificate: { status, renewal, auto_renew, issuer, owner, current_version: version },
  settings,
}: {
  readonly certificate: Certificate;
  readonly settings: Settings | undefined;
}) {
  const now = useNow();
  const expiry = version && <Time at={version.not_after} show="both" />;
  const isOver = version !== null && Date.parse(version.not_after) <= now;
  const ends = (
    <>
      {isOver ? 'expired' : 'expires'} {expiry}
    </>
  );
  const notice = (tone: 'info' | 'good' | 'warning' | 'bad', title: string, text: ComponentChildren) => (
    <Notice tone={tone} title={title}>
      <p>{text}</p>
      {renewal.last_error !== null && (
        <>
          <p>
            The last attempt failed <Time at={renewal.last_attempt_at} />:
          </p>
          <blockquote class="words">{renewal.last_error}</blockquote>
        </>
      )}
      {suggested !== null && suggested !== undefined && renewal.last_error === null && (
        <p class="quiet">
          The CA suggests renewing between <Time at={suggested.start} show="absolute" /> and{' '}
          <Time at={suggested.end} show="absolute" />.
        </p>
      )}
    </Notice>
  );
  const suggested = settings?.renewal_window;
  const retry = <Time at={settings?.retry_after ?? renewal.next_at} show="both" />;
  if (status === 'disabled')
    return notice(
      'info',
      'Disabled',
      <>The vault does not renew this certificate.{expiry && <> The current version {ends}.</>}</>,
    );
  if (owner !== null && version === null) {
    return notice(
      'info',
      `Ordered by the ACME client ${owner.name}`,
      'The CA has not issued it yet. The client sees why, and orders again.',
    );
  }
  if (owner !== null) {
    const tone = status === 'expired' ? 'bad' : status === 'expiring' ? 'warning' : 'info';
    return notice(
      tone,
      status === 'valid'
        ? `Renewed by the ACME client ${owner.name}`
        : `Not renewed by the ACME client ${owner.name}`,
      <>
        {status === 'valid'
          ? 'The client orders each new version itself; the vault cannot renew or change this certificate.'
          : 'The client should have renewed this certificate. Check the program on the machine where it runs.'}
        {expiry && <> The current version {ends}.</>}
      </>,
    );
  }
  if (issuer === null) {
    const left = version ? daysLeft(Date.parse(version.not_after), now) : 0;
    const tone = status === 'expired' ? 'bad' : status === 'expiring' || left < 30 ? 'warning' : 'info';
    return notice(
      tone,
      'Imported',
      <>
        The vault cannot renew imported certificates.{' '}
        {isOver ? (
          <>This one {ends}. Import a new version.</>
        ) : (
          <>Import a new version before this one {ends}.</>
        )}
      </>,
    );
  }
  if (!auto_renew)
    return notice(
      'warning',
      'Automatic renewal is off',
      isOver ? <>The certificate {ends}. Renew it.</> : <>Renew the certificate before it {ends}.</>,
    );
  if (renewal.last_error !== null) {
    const tone = status === 'expired' || version === null ? 'bad' : 'warning';
    return notice(
      tone,
      'Renewal failed',
      <>
        Retrying {retry}.{expiry && <> The certificate {ends}.</>}
      </>,
    );
  }
  if (version === null) return notice('info', 'Waiting for the first version', 'No files to download yet.');
  return notice(
    status === 'valid' ? 'good' : status === 'expired' ? 'bad' : 'warning',
    'Renews automatically',
    <>
      Next renewal <Time at={renewal.next_at} show="both" />. The current version {ends}.
    </>,
  );
}
