/** What a certificate is now, what happens next and when, and its files. */
import type { ComponentChildren } from 'preact';
import { useNow } from '../clock.ts';
import { Notice } from '../components/notice.tsx';
import { Facts, Section } from '../components/page.tsx';
import { Time } from '../components/time.tsx';
import type { Certificate, Renewal, Settings } from '../shapes.ts';
import { daysLeft } from '../time.ts';
import { Downloads } from './downloads.tsx';
import { RenewalSteps } from './renewal-steps.tsx';

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
          <Downloads name={certificate.name} version={version.version} isCurrent />
        </Section>
      )}
      <Section title="Facts">
        <Facts
          facts={[
            ['Domains', certificate.domains.join(', ')],
            ['Issuer', certificate.issuer ?? 'none: it was imported'],
            ['Fallback issuer', settings?.fallback_issuer],
            ['Signed by', version?.issuer],
            ['Valid from', version && <Time at={version.not_before} show="both" />],
            ['Expires', version && <Time at={version.not_after} show="both" />],
            ['Key', version?.key_type ?? certificate.key_type],
            ['Key at renewal', settings && (settings.reuse_key ? 'stays the same' : 'is made anew')],
            ['Challenge', settings?.challenge],
            ['Profile', settings?.profile],
            ['Lifetime asked for', settings?.lifetime],
            ['Serial', version && <span class="mono">{version.serial}</span>],
            ['SHA-256', version && <span class="mono">{version.fingerprint_sha256}</span>],
            ['Made', <Time key="made" at={certificate.created_at} show="both" />],
          ]}
        />
      </Section>
    </>
  );
}

/** Shown for a while after its end, so that whoever asked for it sees how it went. */
function isFresh({ finished_at }: Renewal, now: number): boolean {
  return finished_at !== null && now - Date.parse(finished_at) < 5 * 60_000;
}

/** What happens next, in a sentence, and the colour of how much it matters. */
function Next({
  certificate: { status, renewal, auto_renew, issuer, current_version: version },
  settings,
}: {
  readonly certificate: Certificate;
  readonly settings: Settings | undefined;
}) {
  const now = useNow();
  const expiry = version && <Time at={version.not_after} show="both" />;
  const say = (tone: 'info' | 'good' | 'warning' | 'bad', title: string, text: ComponentChildren) => (
    <Notice tone={tone} title={title}>
      <p>{text}</p>
      {renewal.last_error !== null && (
        <>
          <p>
            The last attempt, <Time at={renewal.last_attempt_at} />, failed:
          </p>
          <blockquote class="words">{renewal.last_error}</blockquote>
        </>
      )}
      {wish !== null && wish !== undefined && renewal.last_error === null && (
        <p class="quiet">
          The CA wishes it between <Time at={wish.start} show="absolute" /> and{' '}
          <Time at={wish.end} show="absolute" />.
        </p>
      )}
    </Notice>
  );
  const wish = settings?.renewal_window;
  const retry = <Time at={settings?.retry_after ?? renewal.next_at} show="both" />;
  if (status === 'disabled')
    return say('info', 'It is disabled', <>Nothing happens to it. It expires {expiry}.</>);
  if (issuer === null) {
    const left = version ? daysLeft(Date.parse(version.not_after), now) : 0;
    const tone = status === 'expired' ? 'bad' : status === 'expiring' || left < 30 ? 'warning' : 'info';
    return say(
      tone,
      'It was imported',
      <>The vault cannot renew it. Import its successor before it expires, {expiry}.</>,
    );
  }
  if (!auto_renew)
    return say('warning', 'It is not renewed by itself', <>Renew it before it expires, {expiry}.</>);
  if (renewal.last_error !== null) {
    const tone = status === 'expired' || version === null ? 'bad' : 'warning';
    return say(
      tone,
      'The renewal fails',
      <>
        It is tried again {retry}.{expiry && <> The certificate expires {expiry}.</>}
      </>,
    );
  }
  if (version === null) return say('info', 'It is being issued', 'Nothing is there to download yet.');
  return say(
    status === 'valid' ? 'good' : status === 'expired' ? 'bad' : 'warning',
    'It is renewed by itself',
    <>
      Next <Time at={renewal.next_at} show="both" />. The one in use expires {expiry}.
    </>,
  );
}
